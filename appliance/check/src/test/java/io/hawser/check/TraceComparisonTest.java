package io.hawser.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class TraceComparisonTest {
    private static final String ALLOCATES = "1 cuMemAlloc_v2(out, 4096) = 0 dptr=d3 sync=0\n";

    private static Trace trace(String text) {
        return Trace.of(text.lines());
    }

    private static TraceComparison compare(String first, String second) {
        return TraceComparison.of(trace(first), trace(second), false);
    }

    private static List<String> differences(String first, String second) {
        return compare(first, second).differences().stream().map(TraceComparison.Difference::text).toList();
    }

    @Test
    void shouldReadAllPartsOfALine() {
        TracedCall call = TracedCall.parse("9 cudaMalloc(out, {a=1 b}) = 0 devPtr=d3 last=1 sync=700 "
            + "contents d0:18aa5d25 d1:error 700");
        assertEquals("cudaMalloc(out, {a=1 b})", call.call());
        assertEquals("0", call.result());
        assertEquals("devPtr=d3", call.outputs());
        assertEquals("1", call.last());
        assertEquals("sync=700", call.sync());
        assertEquals("error 700", call.contents().get("d1"));
        assertEquals("crash 11", TracedCall.parse("8 cuInit(0) = crash 11").result());
        assertEquals("not made: no link state", TracedCall.parse("8 cuLinkDestroy(null) not made: no link state")
            .result());
        assertEquals("begin of capture", TracedCall.parse("1 begin of capture = 0 capturing").function());
        assertNull(TracedCall.parse("episode 3 plain: memory=2"));
        assertEquals(Set.of("d3", "stream0"), TracedCall.parse("1 f(d3+256, ~stream0, h, add, cuMemAlloc) = 1")
            .usedObjects());
    }

    @Test
    void shouldKeepTheFixedCallsOfAShorterRun() {
        Trace all = trace(ALLOCATES + "7 cuInit(0) = 0\n1000000 cudaMalloc(&p, 0) = 0/0/0/0 null=1\n");
        assertEquals(Set.of(1, 1_000_000), all.first(5).calls().keySet());
        assertTrue(all.first(5).hasCases());
        assertEquals(Set.of(1, 7), all.withoutCases().calls().keySet());
        assertEquals(List.of("1000000 cudaMalloc(&p, 0): 1/1/1/0 and 1/0/0/0"), differences(
            "1000000 cudaMalloc(&p, 0) = 1/1/1/0 \n", "1000000 cudaMalloc(&p, 0) = 1/0/0/0 \n"));
    }

    @Test
    void shouldFindNoDifferenceBetweenEqualRuns() {
        TraceComparison same = compare(ALLOCATES, ALLOCATES);
        assertEquals(List.of(), same.differences());
        assertEquals(1, same.compared());
    }

    @Test
    void shouldReportEachFieldThatDiffers() {
        assertEquals(List.of("5 f(1): 1 and 400"), differences("5 f(1) = 1 sync=0", "5 f(1) = 400 sync=0"));
        assertEquals(List.of("5 f(1): OUTPUTS x=2 and x=3"), differences("5 f(1) = 0 x=2", "5 f(1) = 0 x=3"));
        assertEquals(List.of("5 f(1): LAST 1 and 2"), differences("5 f(1) = 0 last=1", "5 f(1) = 0 last=2"));
        assertEquals(List.of("5 f(1): SYNC sync=0 and sync=700"),
            differences("5 f(1) = 0 sync=0", "5 f(1) = 0 sync=700"));
        assertEquals(List.of("5 f(1): CONTENTS d0:18aa5d25 and d0:18aa5d26"),
            differences("5 f(1) = 0 sync=0 contents d0:18aa5d25", "5 f(1) = 0 sync=0 contents d0:18aa5d26"));
        assertEquals(List.of("5 f(1): ARGUMENTS f(1) and f(2)"), differences("5 f(1) = 0", "5 f(2) = 0"));
        assertEquals(List.of("5 f(1): MISSING a line and no line"), differences("5 f(1) = 0", ""));
    }

    @Test
    void shouldCountAUseOfADoubtfulObjectAsAFollowUp() {
        TraceComparison comparison = compare(ALLOCATES + "2 cuMemFree_v2(d3) = 0 sync=0\n3 g(d0) = 1",
            "1 cuMemAlloc_v2(out, 4096) = 2 sync=0\n2 cuMemFree_v2(null) = 1 sync=0\n3 g(d0) = 2");
        assertEquals(List.of(1, 3), comparison.differences().stream().map(d -> d.call().index()).toList());
        assertEquals(1, comparison.followUps());
    }

    @Test
    void shouldDoubtTheMemoryThatAFollowUpUsesInEitherRun() {
        assertEquals(1, differences(ALLOCATES + "2 set(d3) = 0\n3 f() = 0 sync=0 contents d0:18aa5d25",
            "1 cuMemAlloc_v2(out, 4096) = 2 sync=0\n2 set(d0) = 0\n3 f() = 0 sync=0 contents d0:18aa5d26").size());
    }

    @Test
    void shouldNotRepeatStateThatDiffersAlready() {
        assertEquals(1, differences("1 f() = 1 last=1\n2 g() = 0 last=1", "1 f() = 2 last=2\n2 g() = 0 last=2").size());
        assertEquals(1, differences("1 f() = 0 sync=0\n2 g() = 0 sync=0", "1 f() = 0 sync=700\n2 g() = 700 sync=700")
            .size());
    }

    @Test
    void shouldTrustAnObjectAgainThatBothRunsHaveMadeAnew() {
        String again = "2 cuMemAlloc_v2(out, 8) = 0 dptr=d3 sync=0\n3 h(d3) = ";
        assertEquals(List.of(1, 3), compare("1 cuMemAlloc_v2(out, 4096) = 0 dptr=d3 sync=0\n" + again + "0",
            "1 cuMemAlloc_v2(out, 4096) = 2 sync=0\n" + again + "1").differences().stream()
            .map(d -> d.call().index()).toList());
    }

    @Test
    void shouldEndAtACrashOfTheSecondRunUntilTheNextEpisode() {
        TraceComparison comparison =
            compare("1 f() = 0\n2 g() = 0\n100 f() = 0", "1 f() = crash 11\n2 g() = 1\n100 f() = 1");
        assertEquals(List.of(1, 100), comparison.differences().stream().map(d -> d.call().index()).toList());
    }

    @Test
    void shouldLeaveOutACallThatCrashesInTheFirstRun() {
        TraceComparison comparison = compare("1 f(null) = crash 11\n2 g() = 0", "1 f(null) = 1 sync=0\n2 g() = 1");
        assertEquals(List.of(2), comparison.differences().stream().map(d -> d.call().index()).toList());
        assertEquals(1, comparison.undefined());
        assertEquals("1", trace("1 f(null) = crash 11\n2 g() = 0").processEnds());
    }

    @Test
    void shouldCompareOnlyResultsOnOtherDevices() {
        assertEquals(List.of(), TraceComparison.of(trace("1 f() = 0 x=1 sync=0\n2 g(1) = 0"),
            trace("1 f() = 0 x=2 sync=0\n2 g(2) = 1"), true).differences());
    }

    @Test
    void shouldAcceptListedDifferencesAndNameStaleEntries() {
        AcceptedDifferences accepted = AcceptedDifferences.of(Stream.of("# comment", "", "cuA*|*null*|1|400|a reason",
            "cuB|*|*|801|open: not implemented", "cuC|*|1|2|never"));
        List<String> reasons = new ArrayList<>();
        for (TraceComparison.Difference one : compare("1 cuAx(3, null) = 1\n2 cuB() = 0\n3 cuAx(3) = 1",
            "1 cuAx(3, null) = 400\n2 cuB() = 801\n3 cuAx(3) = 400").differences()) {
            reasons.add(accepted.find(one).map(AcceptedDifferences.Entry::reason).orElse("none"));
        }
        assertEquals(List.of("a reason", "open: not implemented", "none"), reasons);
        assertEquals(List.of("cuC|*|1|2|never"),
            accepted.stale().stream().map(AcceptedDifferences.Entry::text).toList());
    }

    @Test
    void shouldRefuseAnEntryWithoutAReason() {
        assertThrows(CheckException.class, () -> AcceptedDifferences.of(Stream.of("cuA|*|1|2| ")));
        assertThrows(CheckException.class, () -> AcceptedDifferences.of(Stream.of("cuA|*|1|2")));
    }

    @Test
    void shouldReduceADifferenceToTheCallsThatItNeeds() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 9; i++) {
            text.append(i).append(i == 2 ? " make() = 0 p=d3\n" : " other() = 0\n");
        }
        Trace all = trace(text + "9 use(d3) = 0");
        assertEquals(List.of(2, 9), Reproduction.makers(9, all));
        assertEquals(List.of(2, 9), new Reproduction(calls -> calls.contains(2) && calls.contains(9)).of(9, all));
        assertEquals(List.of(5, 9), new Reproduction(calls -> calls.contains(5) && calls.contains(9)).of(9, all));
        assertEquals(List.of(), new Reproduction(calls -> false).of(9, all));
    }

    @Test
    void shouldBoundTheRunsOfAReduction() {
        List<List<Integer>> runs = new ArrayList<>();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 100; i++) {
            text.append(i).append(" f() = 0\n");
        }
        new Reproduction(calls -> runs.add(calls) && calls.size() == 100).of(99, trace(text.toString()));
        assertTrue(runs.size() <= 16);
    }

    @Test
    void shouldReadTheDescriptionOfARun() {
        Trace read = trace("function cuInit\ndescription 0badcafe\n0 cuInit(0) = 0\n");
        assertEquals("0badcafe", read.description());
        assertEquals(Set.of(0), read.calls().keySet());
        assertEquals("0badcafe", read.first(0).description());
        assertEquals("", trace("0 cuInit(0) = 0\n").description());
    }

    @Test
    void shouldNotCountALastErrorThatDifferedBefore() {
        String other = "1 cudaFree(null) = %s last=%s sync=0\n2 cudaPeekAtLastError() = %s last=%s sync=0\n";
        assertEquals(List.of("1 cudaFree(null): 1 and 400"),
            differences(other.formatted(1, 1, 1, 1), other.formatted(400, 400, 400, 400)));
        assertEquals(List.of("2 cudaPeekAtLastError(): 1 and 400"),
            differences(other.formatted(1, 1, 1, 1), other.formatted(1, 1, 400, 400)));
    }
}
