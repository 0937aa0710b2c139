package io.hawser.broker.status;

/** Tells a guest what its vGPU is and does. Any thread; waits for nothing. */
@FunctionalInterface
public interface StatusSource {
    /**
     * The text, as hws_status.h describes it.
     *
     * @param vgpu the guest's; one that is gone has the first lines only.
     * @param maxBytes of its UTF-8; sessions that do not fit are counted at its end.
     */
    String of(String vgpu, int maxBytes);
}
