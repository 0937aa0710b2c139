package io.hawser.gpu.nvidia;

/** Events of the driver. */
final class DriverEvents implements Markers.Events {
    private static final int CU_EVENT_DISABLE_TIMING = 2; // cuda.h

    private final DeviceText text;

    DriverEvents(DeviceText text) {
        this.text = text;
    }

    @Override
    public long create() {
        return Natives.created(out -> Driver.cuEventCreate(out, CU_EVENT_DISABLE_TIMING));
    }

    @Override
    public int query(long event) {
        return Driver.cuEventQuery(event);
    }

    @Override
    public void flush(long event) {
        text.flush(event);
    }
}
