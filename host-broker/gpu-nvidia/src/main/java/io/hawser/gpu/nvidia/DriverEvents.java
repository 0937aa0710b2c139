package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;
import java.util.function.LongUnaryOperator;

/** Events of the driver. */
final class DriverEvents implements Markers.Events {
    private static final int CU_EVENT_DISABLE_TIMING = 2; // cuda.h

    private final DeviceText text;
    private final LongUnaryOperator home;

    /** @param home maps a context to the context in which its events are created. */
    DriverEvents(DeviceText text, LongUnaryOperator home) {
        this.text = text;
        this.home = home;
    }

    @Override
    public long home(long context) {
        return home.applyAsLong(context);
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
