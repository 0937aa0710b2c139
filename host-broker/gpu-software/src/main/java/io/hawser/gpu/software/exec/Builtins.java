package io.hawser.gpu.software.exec;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Functions that kernels call, except arithmetic and memory accesses. */
public final class Builtins {
    private static final int MAX_STRING_BYTES = 1 << 16; // ends the read of a string without a terminator

    private Builtins() {
    }

    static void trap() {
        throw new DeviceFault(DeviceFault.LAUNCH_FAILED, "kernel executed trap");
    }

    static void exitThread() {
        throw ThreadExit.INSTANCE;
    }

    static void sleep() {
        Thread.onSpinWait();
    }

    static int nonZero(int value) {
        return value != 0 ? 1 : 0;
    }

    static int same(long a, long b) {
        return a == b ? 1 : 0;
    }

    static void noFunction(long address) {
        throw new DeviceFault(DeviceFault.INVALID_PC, "indirect call must reach a function of its shape: address=0x"
            + Long.toHexString(address));
    }

    /** The bytes of a string at a generic address, without the terminator. */
    static byte[] string(Globals g, CtaSlot c, int t, long address) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 0; i < MAX_STRING_BYTES; i++) {
            int b = Mem.ldU8(g, c, t, address + i);
            if (b == 0) {
                break;
            }
            bytes.write(b);
        }
        return bytes.toByteArray();
    }

    /** printf: reads the packed arguments at an address, each at its natural alignment. */
    static int vprintf(Globals g, CtaSlot c, int t, long format, long arguments) {
        Printf printf = new Printf(g, c, t, arguments);
        int items = printf.run(string(g, c, t, format));
        c.launch.output.accept(printf.bytes());
        return items;
    }

    static void assertfail(Globals g, CtaSlot c, int t, long message, long file, int line, long function,
        long charBytes) {
        // Prints the same line as CUDA. The context then fails.
        String text = text(g, c, t, file) + ":" + line + ": " + text(g, c, t, function) + ": block: [" + c.ctaX + ","
            + c.ctaY + "," + c.ctaZ + "], thread: [" + c.tidX[t] + "," + c.tidY[t] + "," + c.tidZ[t]
            + "] Assertion `" + text(g, c, t, message) + "` failed.";
        c.launch.output.accept((text + "\n").getBytes(StandardCharsets.UTF_8));
        throw new DeviceFault(DeviceFault.ASSERT, text);
    }

    private static String text(Globals g, CtaSlot c, int t, long address) {
        return address == 0 ? "" : new String(string(g, c, t, address), StandardCharsets.UTF_8);
    }

    /** Sets a condition of a graph, whose handle is the address of its value. */
    static void cudaGraphSetConditional(Globals g, CtaSlot c, int t, long handle, int value) {
        Mem.st32(g, c, t, handle, value);
    }

    static long malloc(Globals g, CtaSlot c, int t, long bytes) {
        return c.launch.heap == null || bytes < 0 ? 0 : c.launch.heap.allocate(bytes);
    }

    static void free(Globals g, CtaSlot c, int t, long address) {
        if (address != 0 && (c.launch.heap == null || !c.launch.heap.free(address))) {
            throw new DeviceFault(DeviceFault.LAUNCH_FAILED, "free must get an address from malloc: address=0x"
                + Long.toHexString(address));
        }
    }
}
