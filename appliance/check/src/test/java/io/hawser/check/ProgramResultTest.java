package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.check.ProgramResult.Verdict;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ProgramResultTest {
    private static final String PASS = "PASS p: 3 elements\n";

    private static ProgramRun run(Way way, int exit, String out) {
        return new ProgramRun(false, exit, out, "", 1, way == Way.NATIVE ? List.of() : List.of(way.label()), 1, 1);
    }

    private static ProgramResult result(Object... waysExitsOutputs) {
        Map<Way, ProgramRun> runs = new EnumMap<>(Way.class);
        for (int i = 0; i < waysExitsOutputs.length; i += 3) {
            Way way = (Way) waysExitsOutputs[i];
            runs.put(way, run(way, (int) waysExitsOutputs[i + 1], (String) waysExitsOutputs[i + 2]));
        }
        return new ProgramResult("p", runs, "");
    }

    @Test
    void shouldAgreeWhereExitAndOutputAreTheNativeOnes() {
        ProgramResult result = result(Way.NATIVE, 0, PASS, Way.TCP, 0, PASS);
        assertEquals(Verdict.RIGHT, result.verdict(Way.TCP));
        assertTrue(result.agrees());
        assertEquals("", result.remark());
    }

    @Test
    void shouldNotCompareTimes() {
        assertEquals(Verdict.RIGHT, result(Way.NATIVE, 0, "# measured: 1 ms\n" + PASS, Way.SHM, 0,
            "# measured: 2 ms\n" + PASS).verdict(Way.SHM));
    }

    @Test
    void shouldFindAnyOtherDifferenceOfOutput() {
        ProgramResult result = result(Way.NATIVE, 0, "1\n" + PASS, Way.TCP, 0, "2\n" + PASS, Way.SHM, 0, "1\n" + PASS);
        assertEquals(Verdict.WRONG, result.verdict(Way.TCP));
        assertEquals(Verdict.RIGHT, result.verdict(Way.SHM));
        assertFalse(result.agrees());
        assertEquals("tcp: output differs: PASS p: 3 elements", result.remark());
    }

    @Test
    void shouldNeverTakeARefusalForAPass() {
        ProgramResult result = result(Way.NATIVE, 0, PASS, Way.TCP, 77, "UNSUPPORTED p: no arrays\n");
        assertEquals(Verdict.REFUSED, result.verdict(Way.TCP));
        assertTrue(result.agrees());
        assertEquals("tcp: UNSUPPORTED p: no arrays", result.remark());
    }

    @Test
    void shouldReportFeaturesThatTheDeviceLacks() {
        assertEquals(Verdict.NOT_HERE, result(Way.NATIVE, 77, "U", Way.TCP, 77, "U").verdict(Way.TCP));
        assertEquals(Verdict.WRONG, result(Way.NATIVE, 77, "U", Way.TCP, 0, PASS).verdict(Way.TCP));
    }

    @Test
    void shouldDistinguishRunsWithOtherFeatures() {
        ProgramResult result = result(Way.NATIVE, 0, "# here: managed memory works\n" + PASS, Way.TCP, 0,
            "# here: managed memory refused\n" + PASS);
        assertEquals(Verdict.IN_PART, result.verdict(Way.TCP));
        assertEquals("tcp: managed memory refused", result.remark());
    }

    @Test
    void shouldCompareCarriersWhereNothingRunsNatively() {
        assertEquals(Verdict.RIGHT, result(Way.TCP, 0, PASS, Way.SHM, 0, PASS).verdict(Way.SHM));
        assertEquals(Verdict.WRONG, result(Way.TCP, 0, PASS, Way.SHM, 0, "PASS p: 4\n").verdict(Way.SHM));
        assertEquals(Verdict.WRONG, result(Way.TCP, 1, "FAIL\n", Way.SHM, 0, PASS).verdict(Way.TCP));
    }

    @Test
    void shouldNotTakeAnotherCarrierForTheWantedOne() {
        ProgramRun overTcp = run(Way.TCP, 0, PASS);
        ProgramResult result = new ProgramResult("p", Map.of(Way.SHM, overTcp), "");
        assertEquals(Verdict.WRONG, result.verdict(Way.SHM));
    }

    @Test
    void shouldReportAHungProgram() {
        ProgramRun hung = new ProgramRun(true, -1, "", "", 120, List.of(), 0, 0);
        ProgramResult result = new ProgramResult("p", Map.of(Way.TCP, hung), "");
        assertEquals(Verdict.HUNG, result.verdict(Way.TCP));
        assertFalse(result.agrees());
        assertEquals("tcp: killed after 120 s", result.remark());
    }
}
