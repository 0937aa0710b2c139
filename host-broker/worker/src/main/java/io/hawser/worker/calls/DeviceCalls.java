package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.DeviceManualCalls;
import io.hawser.cuda.generated.DeviceReplies;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.DeviceArena;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Devices. Session thread. */
final class DeviceCalls implements DeviceManualCalls<Call> {
    private final GuestObjects objects;
    private final GpuBackend backend;

    DeviceCalls(Session session) {
        this.objects = session.objects();
        this.backend = session.backend();
    }

    @Override
    public void hwsDeviceInfo(Call call, int ordinal) {
        if (ordinal < 0 || ordinal >= backend.deviceCount()) {
            call.fail(CudaResult.INVALID_DEVICE);
            return;
        }
        MemorySegment info = call.scratch(HwsDeviceInfo.BYTES);
        int result = backend.deviceInfo(ordinal, info);
        if (result == 0) {
            long total = info.get(ValueLayout.JAVA_LONG, HwsDeviceInfo.TOTAL_BYTES_OFFSET);
            info.set(ValueLayout.JAVA_LONG, HwsDeviceInfo.TOTAL_BYTES_OFFSET,
                objects.quota().totalBytes(ordinal, total)); // a guest sees its quota, not the device's memory
            DeviceArena.Range window = objects.arena().window(ordinal, total);
            info.set(ValueLayout.JAVA_LONG, HwsDeviceInfo.ARENA_ADDRESS_OFFSET, window.address());
            info.set(ValueLayout.JAVA_LONG, HwsDeviceInfo.ARENA_BYTES_OFFSET, window.bytes());
            info.set(ValueLayout.JAVA_INT, HwsDeviceInfo.ARENA_REPORTS_OFFSET,
                objects.arena().needsReports() ? 1 : 0);
            DeviceReplies.hwsDeviceInfo(call.reply(), info);
        }
        call.finish(result);
    }
}
