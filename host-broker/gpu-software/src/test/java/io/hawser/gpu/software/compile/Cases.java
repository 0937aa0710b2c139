package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Single instructions with operands and expected results, run together in one kernel of one thread. Operands come from
 * memory, so that the compiler cannot fold them. Kinds of registers: h b16, r b32, l b64, f f32, d f64, p pred.
 */
final class Cases {
    private record Case(String text, String kinds, long expected, long[] operands) {}

    private final List<Case> cases = new ArrayList<>();

    static long f(float value) {
        return Float.floatToRawIntBits(value) & 0xFFFFFFFFL;
    }

    static long d(double value) {
        return Double.doubleToRawLongBits(value);
    }

    static long u(int value) {
        return value & 0xFFFFFFFFL;
    }

    /**
     * Adds a case.
     *
     * @param text  instruction with $d for the result and $0, $1, ... for operands.
     * @param kinds kind of the result, then the kind of each operand.
     */
    Cases add(String text, String kinds, long expected, long... operands) {
        cases.add(new Case(text, kinds, expected, operands));
        return this;
    }

    private static String type(char kind) {
        return switch (kind) {
            case 'h' -> "b16";
            case 'r' -> "b32";
            case 'l' -> "b64";
            case 'f' -> "f32";
            case 'd' -> "f64";
            default -> "pred";
        };
    }

    private static String fromWide(char kind, String to, String wide) {
        return switch (kind) {
            case 'h' -> "cvt.u16.u64 " + to + ", " + wide + ";";
            case 'r' -> "cvt.u32.u64 " + to + ", " + wide + ";";
            case 'l' -> "mov.b64 " + to + ", " + wide + ";";
            case 'f' -> "{ .reg .b32 %t; cvt.u32.u64 %t, " + wide + "; mov.b32 " + to + ", %t; }";
            case 'd' -> "mov.b64 " + to + ", " + wide + ";";
            default -> "setp.ne.u64 " + to + ", " + wide + ", 0;";
        };
    }

    private static String toWide(char kind, String from) {
        return switch (kind) {
            case 'h' -> "cvt.u64.u16 %w, " + from + ";";
            case 'r' -> "cvt.u64.u32 %w, " + from + ";";
            case 'l', 'd' -> "mov.b64 %w, " + from + ";";
            case 'f' -> "{ .reg .b32 %t; mov.b32 %t, " + from + "; cvt.u64.u32 %w, %t; }";
            default -> "selp.u64 %w, 1, 0, " + from + ";";
        };
    }

    private String module() {
        StringBuilder text = new StringBuilder(".version 9.0\n.target sm_90\n.address_size 64\n"
            + ".visible .entry cases(.param .u64 out, .param .u64 in) {\n"
            + ".reg .b64 %out; .reg .b64 %in; ld.param.u64 %out, [out]; ld.param.u64 %in, [in];\n");
        int operand = 0;
        for (int i = 0; i < cases.size(); i++) {
            Case one = cases.get(i);
            text.append("{ .reg .b64 %w; .reg .").append(type(one.kinds.charAt(0))).append(" %d;\n");
            String instruction = one.text.replace("$d", "%d");
            for (int k = 0; k < one.operands.length; k++) {
                char kind = one.kinds.charAt(k + 1);
                text.append(".reg .").append(type(kind)).append(" %x").append(k).append("; ld.global.b64 %w, [%in+")
                    .append(8 * operand++).append("]; ").append(fromWide(kind, "%x" + k, "%w")).append('\n');
                instruction = instruction.replace("$" + k, "%x" + k);
            }
            text.append(instruction).append(";\n").append(toWide(one.kinds.charAt(0), "%d"));
            text.append(" st.global.b64 [%out+").append(8 * i).append("], %w; }\n");
        }
        return text.append("ret; }\n").toString();
    }

    /** Runs all cases and compares bits; for an expected NaN any NaN passes. */
    void run() throws Exception {
        try (Device device = new Device(module())) {
            long[] in = cases.stream().flatMapToLong(c -> java.util.Arrays.stream(c.operands)).toArray();
            long from = device.allocate(Math.max(8, 8L * in.length));
            for (int i = 0; i < in.length; i++) {
                device.at(from + 8L * i, 8).set(ValueLayout.JAVA_LONG_UNALIGNED, 0, in[i]);
            }
            long out = device.allocate(8L * cases.size());
            device.launch("cases", 1, 1, out, from);
            for (int i = 0; i < cases.size(); i++) {
                Case one = cases.get(i);
                long got = device.at(out + 8L * i, 8).get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
                StringBuilder label = new StringBuilder(one.text);
                for (long operand : one.operands) {
                    label.append(" 0x").append(Long.toHexString(operand));
                }
                assertEquals(hex(one, one.expected), hex(one, got), label.toString());
            }
        }
    }

    private static String hex(Case one, long bits) {
        char kind = one.kinds.charAt(0);
        if (kind == 'f' && Float.isNaN(Float.intBitsToFloat((int) bits)) && bits >>> 32 == 0
            || kind == 'd' && Double.isNaN(Double.longBitsToDouble(bits))) {
            return "NaN";
        }
        return Long.toHexString(bits);
    }
}
