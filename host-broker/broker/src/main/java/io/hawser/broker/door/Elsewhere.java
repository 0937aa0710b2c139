package io.hawser.broker.door;

import java.util.concurrent.CompletionStage;

/** Finds the broker of a pool that holds a vGPU, for guests that come to another one. */
@FunctionalInterface
public interface Elsewhere {
    /**
     * Address of the broker that holds a vGPU. Only for a guest that has proved a token of the vGPU. Event loop only;
     * it must not wait.
     *
     * @param vgpu name of the token's vGPU.
     * @param overTls whether the guest came over TLS, and needs the other broker's address for TLS.
     * @param opens whether the guest opens a session; the answer then comes after the end of a move of the vGPU.
     * @return completes on the event loop, at once where this broker holds the vGPU and does not move it: an address
     *     as {@code host:port} or {@code [v6]:port}, ASCII, at most {@code RecordLayout.MAX_ADDRESS_BYTES}; guests
     *     refuse anything else. null when this broker holds the vGPU, when no broker does, or when the other broker has
     *     no address of this kind: this broker then serves or refuses the guest itself.
     */
    CompletionStage<String> of(String vgpu, boolean overTls, boolean opens);
}
