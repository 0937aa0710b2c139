package io.hawser.worker.calls;

import io.hawser.cuda.generated.HwsGraphEdge;
import io.hawser.cuda.generated.HwsGraphNode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Reads the descriptions of nodes in a blob, one after the other. It checks every length from the guest against the
 * blob.
 */
final class GraphBlob {
    private final MemorySegment blob;
    private long start;
    private long at;
    private long bodyOffset;
    private String malformed;

    GraphBlob(MemorySegment blob) {
        this.blob = blob;
    }

    private int i32(long offset) {
        return blob.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    /** Moves to the next description; false at the end or at a malformed description. */
    boolean next() {
        if (malformed != null || at == blob.byteSize()) {
            return false;
        }
        start = at;
        if (blob.byteSize() - start < HwsGraphNode.BYTES) {
            return refuse("a node's description must be whole: offset=" + start);
        }
        long bytes = Integer.toUnsignedLong(i32(start + HwsGraphNode.BYTES_OFFSET));
        bodyOffset = start + HwsGraphNode.BYTES + dependencyCount() * HwsGraphEdge.BYTES;
        at = bodyOffset + bytes;
        if (at > blob.byteSize() || bytes % Long.BYTES != 0) {
            return refuse("a node's description must lie in its blob: offset=" + start + " dependencies="
                + dependencyCount() + " bytes=" + bytes + " blobBytes=" + blob.byteSize());
        }
        return true;
    }

    private boolean refuse(String why) {
        malformed = why;
        return false;
    }

    /** The rule that the blob breaks and its values; null for none. */
    String malformed() {
        return malformed;
    }

    int index() {
        return i32(start + HwsGraphNode.INDEX_OFFSET);
    }

    int type() {
        return i32(start + HwsGraphNode.TYPE_OFFSET);
    }

    /** The context's id, 0 for the record's context. */
    long context() {
        return blob.get(ValueLayout.JAVA_LONG_UNALIGNED, start + HwsGraphNode.CONTEXT_OFFSET);
    }

    long dependencyCount() {
        return Integer.toUnsignedLong(i32(start + HwsGraphNode.DEPENDENCY_COUNT_OFFSET));
    }

    /** The dependencies: an array of HwsGraphEdge. */
    MemorySegment dependencies() {
        return blob.asSlice(start + HwsGraphNode.BYTES, dependencyCount() * HwsGraphEdge.BYTES);
    }

    MemorySegment body() {
        return blob.asSlice(bodyOffset, at - bodyOffset);
    }
}
