package io.hawser.gpu.software.exec;

/** Creates the faults of memory accesses, in methods of their own so that the hot methods stay small. */
final class Faults {
    private Faults() {
    }

    /** The PTX line that is executing, from the line table of the generated code. */
    static String line() {
        return StackWalker.getInstance(StackWalker.Option.SHOW_HIDDEN_FRAMES).walk(frames -> frames
            .filter(f -> f.getClassName().startsWith(CodeLoader.CLASS_NAME + "/"))
            .map(f -> " ptxLine=" + f.getLineNumber()).findFirst().orElse(""));
    }

    static DeviceFault global(long address, int bytes) {
        String at = ": address=0x" + Long.toHexString(address) + " bytes=" + bytes + line();
        if ((address & bytes - 1) != 0) {
            return new DeviceFault(DeviceFault.MISALIGNED_ADDRESS, "access must be aligned to its size" + at);
        }
        return new DeviceFault(DeviceFault.ILLEGAL_ADDRESS, "access must lie inside an allocation" + at);
    }

    static DeviceFault window(long offset) {
        return new DeviceFault(DeviceFault.ILLEGAL_ADDRESS,
            "access must lie inside the shared, local or parameter memory: offset=0x" + Long.toHexString(offset)
                + line());
    }

    static DeviceFault misaligned(int offset, int bytes) {
        return new DeviceFault(DeviceFault.MISALIGNED_ADDRESS,
            "access to shared or local memory must be aligned to its size: offset=0x" + Integer.toHexString(offset)
                + " bytes=" + bytes + line());
    }
}
