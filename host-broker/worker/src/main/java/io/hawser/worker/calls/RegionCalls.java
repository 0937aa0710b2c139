package io.hawser.worker.calls;

import io.hawser.worker.session.Call;

/** Copies through a region of shared memory. */
final class RegionCalls {
    void hwsHostMap(Call call, long regionOffset, long byteCount) {
        refuse(call);
    }

    void hwsHostUnmap(Call call, long regionOffset) {
        refuse(call);
    }

    void hwsCopyHtoDShared(Call call, long dstDevice, long regionOffset, long byteCount, int chunk) {
        refuse(call);
    }

    void hwsCopyDtoHShared(Call call, long srcDevice, long regionOffset, long byteCount, int chunk) {
        refuse(call);
    }

    void hwsWriteBoxShared(Call call, Box box, long regionOffset, long hostPitch, long hostSlicePitch, int chunk) {
        refuse(call);
    }

    void hwsReadBoxShared(Call call, Box box, long regionOffset, long hostPitch, long hostSlicePitch, int chunk) {
        refuse(call);
    }

    private static void refuse(Call call) {
        call.fatal("a session without a region has nothing to copy through it");
    }
}
