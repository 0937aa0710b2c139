package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.gpu.software.exec.DeviceFault;
import io.hawser.gpu.software.exec.Surface;
import io.hawser.gpu.software.exec.TexelLevel;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Accesses of kernels to surfaces. */
class SurfacesTest {
    private static final int ROW_BYTES = 64;
    private static final int HEIGHT = 4;
    private static final int DEPTH = 3;
    private static final String HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n";

    /** A kernel copy(s, x, y, z, in, out): writes the value at in to the surface and reads it back to out. */
    private static String copy(String geometry, String vector, int bits, String mode) {
        String at = switch (geometry) {
            case "1d" -> "{%r0}";
            case "2d" -> "{%r0, %r1}";
            case "3d" -> "{%r0, %r1, %r2, %r2}";
            case "a1d" -> "{%r2, %r0}";
            default -> "{%r2, %r0, %r1, %r1}";
        };
        String register = bits == 64 ? "%d1" : bits == 32 ? "%r1" : "%h";
        int count = vector.isEmpty() ? 1 : vector.charAt(2) - '0';
        StringBuilder elements = new StringBuilder();
        for (int i = 0; i < count; i++) {
            elements.append(i == 0 ? "{" : ", ").append(register).append(i);
        }
        elements.append('}');
        String memory = vector.isEmpty() ? elements.substring(1, elements.length() - 1) : elements.toString();
        String type = ".b" + bits;
        return HEAD + ".visible .entry copy(.param .u64 s, .param .u32 x, .param .u32 y, .param .u32 z, .param .u64 in,"
            + " .param .u64 out) {\n.reg .b16 %h<4>; .reg .b32 %r<20>; .reg .b64 %d<20>;\n"
            + "ld.param.u64 %d0, [s]; ld.param.u32 %r0, [x]; ld.param.u32 %r1, [y]; ld.param.u32 %r2, [z];\n"
            + "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; mov.b64 %d3, %d1; mov.b32 %r3, %r1;\n"
            + "ld.global" + vector + type + " " + memory + ", [%d3];\n"
            + "sust.b." + geometry + vector + type + "." + mode + " [%d0, " + at.replace("%r1", "%r3") + "], "
            + elements + ";\nsuld.b." + geometry + vector + type + "." + mode + " " + elements + ", [%d0, "
            + at.replace("%r1", "%r3") + "];\nst.global" + vector + type + " [%d2], " + memory + ";\nret;\n}\n";
    }

    private static long surface(Device device, long address) {
        return device.memory.objects().add(device,
            new Surface(new TexelLevel(address, ROW_BYTES, HEIGHT, DEPTH, ROW_BYTES), ROW_BYTES));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1d", "2d", "3d", "a1d", "a2d"})
    void shouldAccessEveryWidthInEveryMode(String geometry) throws PtxException {
        Random random = new Random(1);
        for (String vector : new String[] {"", ".v2", ".v4"}) {
            for (int bits = 8; bits <= 64; bits *= 2) {
                int bytes = (vector.isEmpty() ? 1 : vector.charAt(2) - '0') * bits / 8;
                for (String mode : bytes > 16 ? new String[0] : new String[] {"trap", "clamp", "zero"}) {
                    try (Device device = new Device(copy(geometry, vector, bits, mode))) {
                        long memory = device.allocate(ROW_BYTES * HEIGHT * DEPTH);
                        long surface = surface(device, memory);
                        for (int i = 0; i < 40; i++) {
                            int x = random.nextInt(-2, ROW_BYTES / bytes + 2) * bytes;
                            int y = random.nextInt(-1, HEIGHT + 1);
                            int z = random.nextInt(-1, DEPTH + 1);
                            access(device, surface, memory, geometry, mode, bytes, x, y, z, random);
                        }
                    }
                }
            }
        }
    }

    private static void access(Device device, long surface, long memory, String geometry, String mode, int bytes, int x,
        int y, int z, Random random) {
        byte[] before = bytes(device, memory, ROW_BYTES * HEIGHT * DEPTH);
        long in = device.allocate(16);
        long out = device.allocate(16);
        byte[] value = new byte[bytes];
        random.nextBytes(value);
        for (int i = 0; i < bytes; i++) {
            device.at(in, 16).set(ValueLayout.JAVA_BYTE, i, value[i]);
        }
        int row = geometry.contains("1d") ? 0 : y;
        int slice = geometry.equals("1d") || geometry.equals("2d") ? 0 : z;
        boolean inside = x >= 0 && x + bytes <= ROW_BYTES && row >= 0 && row < HEIGHT && slice >= 0 && slice < DEPTH;
        Object[] arguments = {surface, x, y, z, in, out};
        if (!inside && mode.equals("trap")) {
            DeviceFault fault = assertThrows(DeviceFault.class, () -> device.launch("copy", 1, 1, arguments));
            assertEquals(DeviceFault.ILLEGAL_ADDRESS, fault.cuResult());
        } else {
            device.launch("copy", 1, 1, arguments);
            boolean isZero = !inside && mode.equals("zero");
            assertArrayEquals(isZero ? new byte[bytes] : value, bytes(device, out, bytes));
            if (!isZero) {
                int at = (Math.clamp(slice, 0, DEPTH - 1) * HEIGHT + Math.clamp(row, 0, HEIGHT - 1)) * ROW_BYTES
                    + Math.clamp(x, 0, ROW_BYTES - bytes);
                System.arraycopy(value, 0, before, at, bytes);
            }
        }
        assertArrayEquals(before, bytes(device, memory, ROW_BYTES * HEIGHT * DEPTH), "only these bytes change");
    }

    private static byte[] bytes(Device device, long address, int count) {
        return device.at(address, count).toArray(ValueLayout.JAVA_BYTE);
    }

    @Test
    void shouldFaultForMisalignedAccessesAndFreedArrays() throws PtxException {
        try (Device device = new Device(copy("2d", "", 32, "zero"))) {
            long memory = device.allocate(ROW_BYTES * HEIGHT * DEPTH);
            long surface = surface(device, memory);
            long buffer = device.allocate(16);
            DeviceFault fault = assertThrows(DeviceFault.class,
                () -> device.launch("copy", 1, 1, surface, 2, 0, 0, buffer, buffer));
            assertEquals(DeviceFault.MISALIGNED_ADDRESS, fault.cuResult());
            device.memory.markFree(memory, ROW_BYTES * HEIGHT * DEPTH);
            fault = assertThrows(DeviceFault.class,
                () -> device.launch("copy", 1, 1, surface, 4, 0, 0, buffer, buffer));
            assertEquals(DeviceFault.ILLEGAL_ADDRESS, fault.cuResult());
        }
    }

    @Test
    void shouldReduce() throws PtxException {
        String text = HEAD + ".visible .entry k(.param .u64 s) { .reg .b64 %d<2>; .reg .b32 %r<2>;\n"
            + "ld.param.u64 %d0, [s]; mov.u32 %r0, 4; mov.u32 %r1, 1;\n"
            + "sured.b.add.2d.u32.trap [%d0, {%r0, %r1}], 5; sured.b.max.2d.s32.trap [%d0, {%r1, 0}], -3;\n"
            + "ret; }\n";
        try (Device device = new Device(text.replace("{%r1, 0}", "{%r0, %r0}").replace("%r0, %r0", "%r0, 0"))) {
            long memory = device.allocate(ROW_BYTES * HEIGHT * DEPTH);
            device.launch("k", 1, 32, surface(device, memory));
            assertEquals(160, device.ints(memory + ROW_BYTES, 2)[1]);
            assertEquals(0, device.ints(memory, 2)[1], "max of 0 and -3");
        }
    }
}
