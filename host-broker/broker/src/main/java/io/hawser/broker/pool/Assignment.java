package io.hawser.broker.pool;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * The parameters of a session, which the broker sends to its worker.
 *
 * @param sessionId counts up from 1 since the broker started.
 * @param vgpu name of the vGPU.
 * @param memoryBytes device memory quota; 0 allows all memory of the GPUs.
 * @param peer address of the guest.
 * @param program the program's name as the guest sent it; for logs only.
 * @param images digests of the device code that the broker keeps for the vGPU.
 * @param place the guest's slot in shared memory; null when the descriptor sent with the assignment is a socket.
 * @param slot the worker's slot in the ledger of the vGPU.
 * @param rdma the guest's offer of RDMA; null when it has made none.
 * @param mayLeave whether the session may follow its vGPU to another broker.
 */
public record Assignment(long sessionId, String vgpu, long memoryBytes, String peer, String program,
    List<String> images, Place place, LedgerSlot slot, Offer rdma, boolean mayLeave) {

    /**
     * A slot of a region.
     *
     * @param regionBytes size of the whole region.
     * @param slotCount number of slots in the region.
     * @param slot number of the guest's slot.
     * @param kind as in RegionLayout: KIND_PROCESS or KIND_MACHINE.
     * @param mapAddress address at which the guest reports to have mapped the region; 0 for any address.
     * @param epoch of the region.
     */
    public record Place(long regionBytes, int slotCount, int slot, int kind, long mapAddress, long epoch) {}

    /**
     * An offer to send the session's records over RDMA.
     *
     * @param end the guest's end, in hexadecimal.
     * @param refusal why the session may not use it; null when it may.
     */
    public record Offer(String end, String refusal) {}

    /** Adds the fields of this assignment to a message to the worker. */
    void describe(ObjectNode message) {
        message.put("sessionId", sessionId).put("vgpu", vgpu).put("memoryBytes", memoryBytes).put("peer", peer)
            .put("program", program).put("carrier", place == null ? "tcp" : "shm").put("mayLeave", mayLeave);
        if (rdma != null) {
            message.put("rdma", rdma.end).put("rdmaRefusal", rdma.refusal);
        }
        images.forEach(message.putArray("images")::add);
        if (place != null) {
            message.put("regionBytes", place.regionBytes).put("slotCount", place.slotCount).put("slot", place.slot)
                .put("kind", place.kind).put("mapAddress", place.mapAddress).put("epoch", place.epoch);
        }
    }
}
