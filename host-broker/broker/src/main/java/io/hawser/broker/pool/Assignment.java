package io.hawser.broker.pool;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * What a worker is told of its session.
 *
 * @param sessionId counts up from 1 since the broker started.
 * @param vgpu name of the share.
 * @param memoryBytes device memory quota; 0 is all of it.
 * @param peer address of the guest.
 * @param program what the guest says its program is; for logs only.
 * @param images digests of the device code that the broker keeps for the share.
 * @param place where the guest is in shared memory; null when the descriptor that goes with this is a socket.
 * @param seat in the ledger of the share.
 */
public record Assignment(long sessionId, String vgpu, long memoryBytes, String peer, String program,
    List<String> images, Place place, LedgerSlot seat) {

    /**
     * A slot of a region.
     *
     * @param regionBytes whole region.
     * @param slotCount its slots.
     * @param slot the guest's.
     * @param kind as in RegionLayout: KIND_PROCESS or KIND_MACHINE.
     * @param mapAddress where the guest says that it has mapped the region; 0 for anywhere.
     * @param epoch of the region.
     */
    public record Place(long regionBytes, int slotCount, int slot, int kind, long mapAddress, long epoch) { }

    /** Its fields in a message to the worker. */
    void describe(ObjectNode message) {
        message.put("sessionId", sessionId).put("vgpu", vgpu).put("memoryBytes", memoryBytes).put("peer", peer)
            .put("program", program).put("carrier", place == null ? "tcp" : "shm");
        images.forEach(message.putArray("images")::add);
        if (place != null) {
            message.put("regionBytes", place.regionBytes).put("slotCount", place.slotCount).put("slot", place.slot)
                .put("kind", place.kind).put("mapAddress", place.mapAddress).put("epoch", place.epoch);
        }
    }
}
