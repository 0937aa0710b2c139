package io.hawser.gpu.nvidia;

/** The driver's own streams. */
final class DriverStreams implements Watches.Streams {
    private final DeviceText text;

    DriverStreams(DeviceText text) {
        this.text = text;
    }

    @Override
    public int query(long stream) {
        return Driver.cuStreamQuery(stream);
    }

    @Override
    public void flush(long stream) {
        text.flushStream(stream);
    }
}
