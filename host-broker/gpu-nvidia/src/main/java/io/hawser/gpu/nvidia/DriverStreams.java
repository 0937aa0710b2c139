package io.hawser.gpu.nvidia;

import io.hawser.cuda.generated.CudaNative;

/** Streams of the driver. */
final class DriverStreams implements Watches.Streams {
    private final DeviceText text;

    DriverStreams(DeviceText text) {
        this.text = text;
    }

    @Override
    public int query(long stream) {
        return CudaNative.cuStreamQuery(stream);
    }

    @Override
    public void flush(long stream) {
        text.flushStream(stream);
    }
}
