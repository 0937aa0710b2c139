package io.hawser.worker.session;

import io.hawser.cuda.backend.GraphNode;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * What a node of a guest's graph does, checked, as the backend is to be told. A copy with the guest's own memory
 * becomes two nodes: one calls the guest, one copies to or from staging memory.
 *
 * @param type CUgraphNodeType, as the guest has it.
 * @param context in which it runs; null for none in particular.
 * @param node the backend's; of the two, the copy.
 * @param callbackId what the guest is called by; meaningless unless {@link #callsGuest}.
 * @param form what becomes of it.
 * @param ranges device memory that a copy or fill touches.
 */
public record GraphParameters(int type, Handle context, GraphNode node, long callbackId, Form form,
        List<Range> ranges) {
    /** What becomes of a node. */
    public enum Form {
        /** One node. */
        PLAIN,
        /** A node that calls the guest. */
        HOST,
        /** One that calls the guest for bytes, and a copy behind it. */
        WRITE,
        /** A copy, and one behind it that calls the guest to fetch the bytes. */
        READ
    }

    /**
     * Device memory.
     *
     * @param address of the first byte.
     * @param bytes how many.
     */
    public record Range(long address, long bytes) { }

    /** Whether executing it calls the guest. */
    public boolean callsGuest() {
        return form != Form.PLAIN;
    }

    /** The node that calls the guest. */
    public GraphNode.Host host() {
        return new GraphNode.Host(callbackId);
    }

    /** The same, with memory of its own for what lies in a record. */
    public GraphParameters owned() {
        if (!(node instanceof GraphNode.Kernel k)) {
            return this;
        }
        return new GraphParameters(type, context, new GraphNode.Kernel(k.function(), k.gridX(), k.gridY(), k.gridZ(),
            k.blockX(), k.blockY(), k.blockZ(), k.sharedBytes(), k.flags(), MemorySegment.NULL, MemorySegment.NULL),
            callbackId, form, ranges);
    }

    /** Whether what it touches is still the session's. */
    public boolean isAllowed(AllocationMap allocations) {
        for (Range range : ranges) {
            if (!allocations.contains(range.address, range.bytes)) {
                return false;
            }
        }
        return true;
    }
}
