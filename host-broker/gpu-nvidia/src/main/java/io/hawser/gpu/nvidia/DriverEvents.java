package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;

/** Events of the driver. */
final class DriverEvents implements Markers.Events {
    private static final int CU_EVENT_DISABLE_TIMING = 2; // cuda.h

    private final DeviceText text;

    DriverEvents(DeviceText text) {
        this.text = text;
    }

    @Override
    public long create() {
        return Natives.created(out -> CudaNative.cuEventCreate(out, CU_EVENT_DISABLE_TIMING));
    }

    @Override
    public int query(long event) {
        return CudaNative.cuEventQuery(event);
    }

    @Override
    public void flush(long event) {
        text.flush(event);
    }
}
