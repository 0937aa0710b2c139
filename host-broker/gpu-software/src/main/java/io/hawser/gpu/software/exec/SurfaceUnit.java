package io.hawser.gpu.software.exec;

/** Executes suld, sust and sured. Generated code finds an address first, and then accesses it by elements. */
public final class SurfaceUnit {
    /** The effect of an access outside of the surface; the numbers are constants in generated code. */
    public enum Outside {
        /** Ends the context. */
        TRAP,
        /** Accesses the nearest place inside. */
        CLAMP,
        /** Reads zeros and writes nothing. */
        ZERO
    }

    private SurfaceUnit() {
    }

    /**
     * The address of an access; 0 if it is outside and has no effect.
     *
     * @param x offset in the row, in bytes.
     * @param z slice, layer or face.
     * @param bytes length of the access, a power of 2 up to 16.
     * @param outside an {@link Outside}.
     */
    static long address(Globals g, long surface, int x, int y, int z, int bytes, int outside) {
        Surface s = g.objects().surface(surface);
        TexelLevel texels = s.texels();
        if ((x & bytes - 1) != 0) {
            throw new DeviceFault(DeviceFault.MISALIGNED_ADDRESS, "surface access must be aligned to its size: x=" + x
                + " bytes=" + bytes + Faults.line());
        }
        int columns = s.rowBytes() / bytes;
        int column = x / bytes;
        boolean inside = column >= 0 && column < columns && y >= 0 && y < texels.height() && z >= 0
            && z < texels.depth();
        if (!inside && outside == Outside.TRAP.ordinal()) {
            throw new DeviceFault(DeviceFault.ILLEGAL_ADDRESS, "surface access must lie inside the surface: x=" + x
                + " y=" + y + " z=" + z + " bytes=" + bytes + " rowBytes=" + s.rowBytes() + " height="
                + texels.height() + " depth=" + texels.depth() + Faults.line());
        }
        if (!inside && (outside == Outside.ZERO.ordinal() || columns == 0)) {
            return 0;
        }
        int nearestX = Math.clamp(column, 0, columns - 1);
        int nearestY = Math.clamp(y, 0, texels.height() - 1);
        int nearestZ = Math.clamp(z, 0, texels.depth() - 1);
        // The array may have been freed since the surface was created.
        return Mem.check(g, texels.at(nearestX, nearestY, nearestZ, bytes), Integer.numberOfTrailingZeros(bytes));
    }

    /** The address of a later element of a vector. */
    static long element(long address, int offset) {
        return address == 0 ? 0 : address + offset;
    }

    static int ldU8(long address) {
        return address == 0 ? 0 : RawMem.ldU8(address);
    }

    static int ldU16(long address) {
        return address == 0 ? 0 : RawMem.ldU16(address);
    }

    static int ld32(long address) {
        return address == 0 ? 0 : RawMem.ld32(address);
    }

    static long ld64(long address) {
        return address == 0 ? 0 : RawMem.ld64(address);
    }

    static void stU8(long address, int value) {
        if (address != 0) {
            RawMem.stU8(address, value);
        }
    }

    static void stU16(long address, int value) {
        if (address != 0) {
            RawMem.stU16(address, value);
        }
    }

    static void st32(long address, int value) {
        if (address != 0) {
            RawMem.st32(address, value);
        }
    }

    static void st64(long address, long value) {
        if (address != 0) {
            RawMem.st64(address, value);
        }
    }

    /** sured of 32 bits. */
    static void reduce32(Globals g, long address, int value, int op) {
        if (address != 0) {
            Atomics.global32(g, address, value, op);
        }
    }

    /** sured of 64 bits. */
    static void reduce64(Globals g, long address, long value, int op) {
        if (address != 0) {
            Atomics.global64(g, address, value, op);
        }
    }
}
