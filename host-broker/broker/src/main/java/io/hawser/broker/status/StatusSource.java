package io.hawser.broker.status;

/** Describes a vGPU to its guests. Any thread; does not block. */
@FunctionalInterface
public interface StatusSource {
    /**
     * The text in the format of hws_status.h.
     *
     * @param vgpu the guest's vGPU; the text of a deleted vGPU has only the first lines.
     * @param maxBytes of the text in UTF-8; its last line counts the sessions that do not fit.
     */
    String of(String vgpu, int maxBytes);
}
