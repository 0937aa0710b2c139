package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.exec.DeviceFault;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Warp operations whose mask names lanes that have exited, do not exist or are elsewhere: results equal an H200's. */
class AbsentLanesTest {
    private static final List<String> OPERATIONS = List.of("up", "down", "bfly", "idx", "ballot", "all", "any", "uni",
        "match.any", "match.all", "redux.add", "redux.min", "redux.max", "redux.and", "redux.or", "redux.xor",
        "activemask", "elect", "match.any.b64");
    // The cases of warp.cu, by the number that is the parameter of its kernels.
    private static final List<String> HOW = List.of("all", "exited,mask=full", "exited,mask=exact",
        "diverged,mask=exact", "even lanes,mask=exact", "halves, one instruction, two masks", "guarded,mask=exact",
        "both branches", "exited behind a syncwarp");
    private static final Pattern LINE = Pattern.compile("(\\S+) b=(\\d+) c=(\\p{XDigit}+) (.*) threads=(\\d+): (.*)");
    private static final int UNTOUCHED = 0xEEEEEEEE;
    private static final String HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
        + ".visible .entry k(.param .u64 out) { .reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p<3>;\n"
        + "mov.u32 %r1, %tid.x; add.u32 %r2, %r1, 100; mov.u32 %r3, 57005;\n";
    private static final String TAIL = "\nld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;\n"
        + "st.global.u32 [%d1], %r3; ret; }";

    @Test
    void shouldAnswerAsTheH200() throws Exception {
        int lines = 0;
        try (Device device = new Device(Device.resource("warp-sm90.ptx"))) {
            long out = device.allocate(256);
            long zero = device.put(0);
            for (String line : Device.resource("warp-h200.txt").split("\n")) {
                Matcher parts = LINE.matcher(line);
                assertTrue(parts.matches(), line);
                int operation = OPERATIONS.indexOf(parts.group(1));
                int threads = Integer.parseInt(parts.group(5));
                device.at(out, 256).fill((byte) UNTOUCHED);
                device.launch("_Z6kernelILi" + operation + "EEvP3OutijjPVi", 1, threads, out,
                    HOW.indexOf(parts.group(4)), Integer.parseInt(parts.group(2)),
                    Integer.parseInt(parts.group(3), 16), zero);
                assertEquals(line, line.substring(0, parts.start(6))
                    + results(device.ints(out, 64), threads, operation < 4));
                lines++;
            }
        }
        assertTrue(lines > 300, "lines of the measurement: " + lines);
    }

    private static String results(int[] out, int threads, boolean shuffle) {
        List<String> results = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int predicate = out[32 + i];
            String mark = shuffle ? predicate == 1 ? "" : predicate == 0 ? "!" : "?" : predicate == 1 ? "+" : "";
            results.add(out[i] == UNTOUCHED && predicate == UNTOUCHED ? "-"
                : (shuffle ? "" + out[i] : Integer.toHexString(out[i])) + mark);
        }
        return String.join(" ", results);
    }

    // Measured on an H200 with __shfl_down_sync(0xffff, 100 + lane, 1): lanes 16 to 31 take part as well.
    @Test
    void shouldShuffleForCallersThatTheirMaskDoesNotName() throws Exception {
        try (Device device = new Device(HEAD + "shfl.sync.down.b32 %r3, %r2, 1, 31, 0xffff;" + TAIL)) {
            long out = device.allocate(128);
            device.launch("k", 1, 32, out);
            List<Integer> expected = new ArrayList<>();
            for (int lane = 0; lane < 32; lane++) {
                expected.add(Math.min(101 + lane, 131));
            }
            assertEquals(expected, Arrays.stream(device.ints(out, 32)).boxed().toList());
            device.launch("k", 1, 20, out);
            expected.set(19, 0);
            assertEquals(expected.subList(0, 20), Arrays.stream(device.ints(out, 20)).boxed().toList());
        }
    }

    // Measured on an H200 with __ballot_sync(0xffff, 1) in 32 lanes: error 715.
    @ParameterizedTest
    @ValueSource(strings = {"vote.sync.ballot.b32 %r3, 1, 0xffff;", "match.any.sync.b32 %r3, %r2, 0xffff;",
        "redux.sync.add.u32 %r3, %r2, 0xffff;"})
    void shouldFaultWhenAMaskDoesNotNameItsCaller(String instruction) throws Exception {
        try (Device device = new Device(HEAD + "setp.eq.u32 %p1, 0, 0; " + instruction.replace(" 1,", " %p1,")
            + TAIL)) {
            long out = device.allocate(128);
            DeviceFault fault = assertThrows(DeviceFault.class, () -> device.launch("k", 1, 32, out));
            assertEquals(DeviceFault.ILLEGAL_INSTRUCTION, fault.cuResult(), fault.getMessage());
            device.launch("k", 1, 16, out);
        }
    }
}
