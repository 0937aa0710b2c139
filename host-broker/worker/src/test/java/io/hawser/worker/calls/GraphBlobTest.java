package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HwsGraphEdge;
import io.hawser.cuda.generated.HwsGraphNode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** GraphBlob checks every length in a blob against the blob's length. */
class GraphBlobTest {
    private static final int BODY_BYTES = 16;
    private static final int NODE_BYTES = HwsGraphNode.BYTES + HwsGraphEdge.BYTES + BODY_BYTES;

    /** Two nodes with one dependency and 16 bytes each. */
    private static MemorySegment two() {
        MemorySegment blob = MemorySegment.ofArray(new long[2 * NODE_BYTES / Long.BYTES]);
        for (int node = 0; node < 2; node++) {
            set(blob, node, HwsGraphNode.INDEX_OFFSET, node);
            set(blob, node, HwsGraphNode.DEPENDENCY_COUNT_OFFSET, 1);
            set(blob, node, HwsGraphNode.BYTES_OFFSET, BODY_BYTES);
        }
        return blob;
    }

    private static void set(MemorySegment blob, int node, int field, int value) {
        blob.set(ValueLayout.JAVA_INT_UNALIGNED, (long) node * NODE_BYTES + field, value);
    }

    private static void refuse(MemorySegment bytes) {
        GraphBlob blob = new GraphBlob(bytes);
        assertTrue(blob.next());
        assertFalse(blob.next());
        assertNotNull(blob.malformed());
        assertFalse(blob.next(), "it stays at its end");
    }

    @Test
    void shouldGoFromNodeToNode() {
        GraphBlob blob = new GraphBlob(two());
        for (int node = 0; node < 2; node++) {
            assertTrue(blob.next());
            assertEquals(node, blob.index());
            assertEquals(HwsGraphEdge.BYTES, blob.dependencies().byteSize());
            assertEquals(BODY_BYTES, blob.body().byteSize());
        }
        assertFalse(blob.next());
        assertNull(blob.malformed());
    }

    @Test
    void shouldRefuseLengthsThatLeaveTheBlob() {
        for (int bytes : new int[] {BODY_BYTES + 8, Integer.MAX_VALUE - 7, Integer.MIN_VALUE, -8, -BODY_BYTES}) {
            MemorySegment blob = two();
            set(blob, 1, HwsGraphNode.BYTES_OFFSET, bytes);
            refuse(blob);
        }
    }

    @Test
    void shouldRefuseLengthsThatAreNoMultipleOfEight() {
        for (int bytes : new int[] {BODY_BYTES - 1, BODY_BYTES - 4, 1}) {
            MemorySegment blob = two();
            set(blob, 1, HwsGraphNode.BYTES_OFFSET, bytes);
            refuse(blob);
        }
    }

    @Test
    void shouldRefuseMoreDependenciesThanTheBlobHolds() {
        for (int count : new int[] {4, Integer.MAX_VALUE, Integer.MIN_VALUE, -1, -2}) {
            MemorySegment blob = two();
            set(blob, 1, HwsGraphNode.DEPENDENCY_COUNT_OFFSET, count);
            refuse(blob);
        }
    }

    @Test
    void shouldRefuseTruncatedNode() {
        for (int length = NODE_BYTES + 1; length < 2 * NODE_BYTES; length++) {
            refuse(two().asSlice(0, length));
        }
    }
}
