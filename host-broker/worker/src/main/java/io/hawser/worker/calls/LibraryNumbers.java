package io.hawser.worker.calls;

import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.worker.session.Call;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Numbers behind pointers of a call, on host or device: the structures HwsScalar and HwsScalars. Session thread. */
final class LibraryNumbers {
    private static final long ALIGNMENT = 16; // of cuDoubleComplex: libraries use instructions that need it

    private LibraryNumbers() {
    }

    /**
     * The number, or its address on the device: a pointer to no bytes. The library follows the handle's pointer mode,
     * so the number must lie there.
     *
     * @param bytes size of the number's type.
     * @param isDeviceMode whether the handle's pointer mode is that of the device.
     * @return undefined when the call has been rejected.
     */
    static MemorySegment of(Call call, MemorySegment content, long bytes, boolean isDeviceMode) {
        int stated = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsScalar.VALUE_BYTES_OFFSET);
        boolean onDevice = content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsScalar.ON_DEVICE_OFFSET) != 0;
        if (stated <= 0 || stated != bytes || stated > content.byteSize() - HwsScalar.VALUE_OFFSET) {
            call.fatal("a number must have its type's size: bytes=" + stated + " typeBytes=" + bytes);
            return MemorySegment.NULL;
        }
        if (onDevice != isDeviceMode) {
            call.fatal("a number must lie where the pointer mode says: isDeviceMode=" + isDeviceMode);
            return MemorySegment.NULL;
        }
        if (!onDevice) {
            return bytes == ALIGNMENT ? aligned(call, content.asSlice(HwsScalar.VALUE_OFFSET))
                : content.asSlice(HwsScalar.VALUE_OFFSET);
        }
        long address = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsScalar.ADDRESS_OFFSET);
        call.checkDevice(address, bytes);
        return MemorySegment.ofAddress(address);
    }

    /** A number of 16 bytes where its type may lie. A record's fields are aligned to 8 only. */
    static MemorySegment aligned(Call call, MemorySegment number) {
        return (number.address() & ALIGNMENT - 1) == 0 ? number
            : call.scratch(number.byteSize()).copyFrom(number);
    }
}
