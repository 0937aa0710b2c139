package io.hawser.worker.session;

import io.hawser.cuda.backend.GraphNode;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * The checked parameters of a node of a guest's graph, in the backend's form. A copy with the guest's own memory
 * becomes two nodes: one calls the guest, the other copies to or from staging memory.
 *
 * @param type the guest's CUgraphNodeType.
 * @param context context of the node; null for none.
 * @param node the backend's parameters; of two nodes, the copy's.
 * @param callbackId id by which the guest is called; unused unless {@link #callsGuest}.
 * @param form the backend's nodes for it.
 * @param ranges device memory that a copy or fill uses.
 */
public record GraphParameters(int type, Handle context, GraphNode node, long callbackId, Form form,
    List<Range> ranges) {
    /** The nodes that the backend gets for one of the guest's. */
    public enum Form {
        /** One node. */
        PLAIN,
        /** A node that calls the guest. */
        HOST,
        /** A node that gets the bytes from the guest, and a copy after it. */
        WRITE,
        /** A copy, and a node after it that calls the guest to fetch the bytes. */
        READ
    }

    /**
     * Device memory.
     *
     * @param address first address.
     * @param bytes its length.
     */
    public record Range(long address, long bytes) {}

    /** Whether its execution calls the guest. */
    public boolean callsGuest() {
        return form != Form.PLAIN;
    }

    /** Parameters of the node that calls the guest. */
    public GraphNode.Host host() {
        return new GraphNode.Host(callbackId);
    }

    /** The same parameters without pointers into the guest's record. */
    public GraphParameters owned() {
        GraphNode owned = switch (node) {
            case GraphNode.Kernel k -> new GraphNode.Kernel(k.function(), k.gridX(), k.gridY(), k.gridZ(), k.blockX(),
                k.blockY(), k.blockZ(), k.sharedBytes(), k.flags(), MemorySegment.NULL, MemorySegment.NULL);
            case GraphNode.MemoryOperations operations -> new GraphNode.MemoryOperations(MemorySegment.NULL);
            default -> node;
        };
        return owned == node ? this : new GraphParameters(type, context, owned, callbackId, form, ranges);
    }

    /** Whether the session still owns all memory that it uses. */
    public boolean isAllowed(AllocationMap allocations) {
        for (Range range : ranges) {
            if (!allocations.contains(range.address, range.bytes)) {
                return false;
            }
        }
        return true;
    }
}
