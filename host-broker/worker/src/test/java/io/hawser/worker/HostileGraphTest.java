package io.hawser.worker;

import static io.hawser.worker.GraphTest.add;
import static io.hawser.worker.GraphTest.bytes;
import static io.hawser.worker.GraphTest.create;
import static io.hawser.worker.GraphTest.executable;
import static io.hawser.worker.GraphTest.instantiate;
import static io.hawser.worker.GraphTest.launch;
import static io.hawser.worker.GraphTest.node;
import static io.hawser.worker.HostileLaunchTest.refuse;
import static io.hawser.worker.HostileLaunchTest.session;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsGraphCopy;
import io.hawser.cuda.generated.HwsGraphKernel;
import io.hawser.cuda.generated.HwsGraphMemset;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.RegionPipe;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Graph nodes with addresses, handles or extents that do not belong to the guest. HostileLaunchTest covers kernels. */
@Timeout(300)
class HostileGraphTest {
    private static final int INVALID_VALUE = 1;
    private static final int OUT_OF_MEMORY = 2;
    private static final int ALLOCATED_BYTES = 4096;
    private static final long WAIT_32 = 1;
    private static final long WRITE_32 = 2;
    private static final long WRITE_64 = 5;
    private static final long BARRIER = 6;
    private static final long DEVICE = 0;
    private static final long REGION = 1;
    private static final long GUEST = 2;
    private static final long ARRAY = 3;

    /** Builds a graph of one node; returns the CUresult. */
    private static int outcome(Guest guest, byte[] node) throws IOException {
        long graph = create(guest);
        add(guest, graph, node);
        int outcome = instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i32(0);
        assertEquals(outcome, guest.call(Guest.CTX_SYNCHRONIZE).status(), "deferred as well");
        return outcome;
    }

    private static byte[] copyNode(long[] to, long[] from, long width, long rows, long slices) {
        ByteBuffer body = bytes(HwsGraphCopy.BYTES);
        for (long[] end : new long[][] {to, from}) {
            Arrays.stream(end).forEach(body::putLong);
        }
        return node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
            body.putLong(width).putLong(rows).putLong(slices).array());
    }

    /** An end of a copy, with rows of 64 bytes. */
    private static long[] end(long place, long base) {
        return new long[] {place, base, 64, 1, 0, 0, 0};
    }

    private static byte[] memset(long address, long pitch, long width, long rows, int element) {
        ByteBuffer body = bytes(HwsGraphMemset.BYTES);
        body.putLong(HwsGraphMemset.DST_OFFSET, address).putLong(HwsGraphMemset.PITCH_OFFSET, pitch);
        body.putLong(HwsGraphMemset.WIDTH_OFFSET, width).putLong(HwsGraphMemset.HEIGHT_OFFSET, rows);
        body.putInt(HwsGraphMemset.VALUE_OFFSET, 7).putInt(HwsGraphMemset.ELEMENT_SIZE_OFFSET, element);
        return node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET, body.array());
    }

    @Test
    void shouldRefuseMemsetThatLeavesTheGuestsAllocation() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            assertEquals(0, outcome(guest, memset(memory, 0, ALLOCATED_BYTES, 1, 1)));
            assertEquals(0, outcome(guest, memset(memory, 128, 16, 32, 4)));
            // address, pitch, width in elements, rows, element
            long[][] fills = {{memory, 0, ALLOCATED_BYTES + 1, 1, 1}, {memory, 0, ALLOCATED_BYTES / 4 + 1, 1, 4},
                {memory - 4, 0, 1, 1, 4}, {memory + ALLOCATED_BYTES, 0, 1, 1, 1}, {memory, 128, 16, 33, 4},
                {memory, 64, 17, 2, 4}, {memory, 1L << 47, 1, 2, 4}, {4096, 0, 1, 1, 1}, {-4, 0, 1, 1, 4},
                {memory, 0, Long.MAX_VALUE / 2, 1, 4}, {memory, 0, 1L << 62, 1, 4}, {memory, 1 << 20, 1, 1L << 62, 4}};
            for (long[] fill : fills) {
                assertEquals(INVALID_VALUE, outcome(guest, memset(fill[0], fill[1], fill[2], fill[3], (int) fill[4])),
                    Arrays.toString(fill));
            }
        });
    }

    /** A mapping changes the session's addresses. The fixture has no memory at the address, and no node runs. */
    @Test
    void shouldRefuseMemsetOfWhatIsNoLongerMapped() throws IOException {
        session((rig, guest) -> {
            long unit = 1 << 16;
            long address = guest.call(CudaOpcodes.hwsMemReserve, 2 * unit, 0, 0).i64(0);
            assertEquals(INVALID_VALUE, outcome(guest, memset(address, 0, unit, 1, 1)), "reserved only");
            long id = guest.newId(HandleKind.MEM_ALLOCATION);
            assertEquals(0, guest.call(CudaOpcodes.hwsMemCreate, out -> {
                out.fixed(32);
                out.i64(0, id);
                out.i64(8, unit);
            }).status());
            assertEquals(0, guest.call(CudaOpcodes.hwsMemMap, address, unit, 0, id).status());
            assertEquals(0, outcome(guest, memset(address, 0, unit, 1, 1)));
            assertEquals(INVALID_VALUE, outcome(guest, memset(address, 0, unit + 1, 1, 1)), "the rest is not mapped");
            assertEquals(0, guest.call(CudaOpcodes.hwsMemUnmap, address, unit).status());
            assertEquals(INVALID_VALUE, outcome(guest, memset(address, 0, unit, 1, 1)), "unmapped");
        });
    }

    /** An operation: type, flags, address, value. */
    private static byte[] operations(long... words) {
        ByteBuffer body = bytes(words.length * Long.BYTES);
        Arrays.stream(words).forEach(body::putLong);
        return node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, body.array());
    }

    @Test
    void shouldRefuseOperationsOnMemoryThatIsNotTheGuests() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            assertEquals(0, outcome(guest, operations(WRITE_32, memory + ALLOCATED_BYTES - 4, 1)));
            assertEquals(0, outcome(guest, operations(BARRIER, -1, 0, WRITE_64, memory, 1)));
            for (long address : new long[] {0, 4096, -4, memory - 4, memory + ALLOCATED_BYTES}) {
                assertEquals(INVALID_VALUE, outcome(guest, operations(WAIT_32, address, 1)), "" + address);
            }
            assertEquals(INVALID_VALUE, outcome(guest, operations(WRITE_64, memory + ALLOCATED_BYTES - 4, 1)));
            assertEquals(INVALID_VALUE, outcome(guest, operations(WRITE_32, memory, 1, WRITE_32, 4096, 1)));
        });
    }

    @Test
    void shouldRefuseMalformedOperations() throws IOException {
        long[][] bodies = {{WRITE_32, 0}, {WRITE_32, 0, 0, WRITE_32}, new long[3 * 257], {0, 0, 0}, {7, 0, 0},
            {WRITE_32 | 2L << 32, 0, 0}, {WAIT_32 | 4L << 32, 0, 0}, {-1, 0, 0}};
        for (long[] body : bodies) {
            refuse(body.length == 2 ? "length must fit" : body.length % 3 != 0 || body.length > 768 ? "be complete"
                : "type and flags of CUDA", (rig, guest) -> add(guest, create(guest), operations(body)));
        }
    }

    @Test
    void shouldRefuseInvalidMemset() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            long[][] fills = {{memory, 0, 0, 1, 1}, {memory, 0, -1, 1, 1}, {memory, 0, 1, 0, 1}, {memory, 0, 1, -1, 1},
                {memory, 0, 1, 1, 0}, {memory, 0, 1, 1, 3}, {memory, 0, 1, 1, 8}, {memory, 0, 1, 1, -1},
                {memory + 2, 0, 1, 1, 4}, {memory + 1, 0, 1, 1, 2}, {memory, 66, 1, 2, 4}};
            for (long[] fill : fills) {
                assertEquals(INVALID_VALUE, outcome(guest, memset(fill[0], fill[1], fill[2], fill[3], (int) fill[4])),
                    Arrays.toString(fill));
            }
        });
    }

    @Test
    void shouldRefuseCopyWithoutExtentOrDevice() throws IOException {
        for (long[] extent : new long[][] {{0, 1, 1}, {64, 0, 1}, {64, 1, 0}}) {
            refuse("have bytes and an end on the device", (rig, guest) -> {
                long[] memory = end(DEVICE, guest.allocate(ALLOCATED_BYTES));
                add(guest, create(guest), copyNode(memory, memory, extent[0], extent[1], extent[2]));
            });
        }
        long[][] places = {{4, DEVICE}, {-1, DEVICE}, {Long.MIN_VALUE, DEVICE}, {DEVICE, 4}, {DEVICE, -1},
            {REGION, REGION}, {REGION, GUEST}, {GUEST, REGION}, {GUEST, GUEST}};
        for (long[] place : places) {
            refuse("have bytes and an end on the device", (rig, guest) -> {
                long memory = guest.allocate(ALLOCATED_BYTES);
                add(guest, create(guest), copyNode(end(place[0], memory), end(place[1], memory), 64, 1, 1));
            });
        }
    }

    @Test
    void shouldRefuseCopyBeyondAnyDevice() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            // pitch, height, x, y, z, width, rows, slices
            long[][] boxes = {{64, 64, 1, 0, 0, 64, 64, 1}, {64, 64, 0, 1, 0, 64, 64, 1}, {64, 32, 0, 0, 1, 64, 32, 2},
                {64, 64, -1, 0, 0, 64, 1, 1}, {64, 64, 0, -1, 0, 64, 1, 1}, {64, 64, 0, 0, -1, 64, 1, 1},
                {32, 64, 0, 0, 0, 64, 2, 1}, {64, 1, 0, 0, 0, 64, 2, 2}, {1, 1, 0, 0, 0, 1L << 49, 1, 1},
                {-64, 1, 0, 0, 0, 64, 2, 1}};
            for (long[] box : boxes) {
                long[] from = {DEVICE, memory, box[0], box[1], box[2], box[3], box[4]};
                assertEquals(INVALID_VALUE, outcome(guest, copyNode(end(DEVICE, memory), from, box[5], box[6],
                    box[7])), Arrays.toString(box));
            }
        });
    }

    @Test
    void shouldRefuseCopyOfMoreRowsThanOneCopyMayHave() throws IOException {
        session((rig, guest) -> {
            long rows = (1L << 22) + 1;
            long memory = guest.allocate(2 * rows);
            long[] all = {DEVICE, memory, 2, rows, 0, 0, 0};
            assertEquals(INVALID_VALUE, outcome(guest, copyNode(all, all, 1, rows, 1)));
            assertEquals(0, outcome(guest, copyNode(all, all, 1, rows - 1, 1)));
        });
    }

    @Test
    void shouldRefuseArrayEndWithoutArray() throws IOException {
        refuse("must have been created", (rig, guest) -> add(guest, create(guest),
            copyNode(end(DEVICE, guest.allocate(ALLOCATED_BYTES)), end(ARRAY, 12L << 40 | 5), 64, 1, 1)));
        refuse("must have been created", (rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            add(guest, create(guest), copyNode(end(DEVICE, memory), end(ARRAY, memory), 64, 1, 1));
        });
    }

    /** An array of 64 by 1 bytes. */
    private static long array(Guest guest) throws IOException {
        long id = guest.newId(HandleKind.ARRAY);
        assertEquals(0, guest.call(CudaOpcodes.cuArray3DCreate_v2, out -> {
            out.fixed(48);
            out.i64(0, id);
            out.i64(8, 64);
            out.i64(16, 1);
            out.i32(32, 1); // CU_AD_FORMAT_UNSIGNED_INT8
            out.i32(36, 1);
        }).status());
        return id;
    }

    @Test
    void shouldRefuseArrayEndOutsideAnyArray() throws IOException {
        session((rig, guest) -> {
            long[] memory = end(DEVICE, guest.allocate(ALLOCATED_BYTES));
            long array = array(guest);
            assertEquals(0, outcome(guest, copyNode(memory, end(ARRAY, array), 64, 1, 1)));
            // x in bytes, y, z
            long[][] places = {{-1, 0, 0}, {0, -1, 0}, {0, 0, -1}, {Long.MIN_VALUE, 0, 0}, {(1L << 40) + 1, 0, 0},
                {0, (1L << 40) + 1, 0}, {0, 0, (1L << 40) + 1}};
            for (long[] place : places) {
                long[] part = {ARRAY, array, 64, 1, place[0], place[1], place[2]};
                assertEquals(INVALID_VALUE, outcome(guest, copyNode(memory, part, 64, 1, 1)), Arrays.toString(place));
                assertEquals(INVALID_VALUE, outcome(guest, copyNode(part, memory, 64, 1, 1)), Arrays.toString(place));
            }
            // No buffer of a guest can have so many bytes: their product exceeds 64 bits.
            assertEquals(OUT_OF_MEMORY,
                outcome(guest, copyNode(end(ARRAY, array), end(GUEST, 50), 1L << 40, 1L << 40, 1)));
        });
    }

    @Test
    void shouldRefuseNodesOfHandlesThatWereNeverCreated() throws IOException {
        int[] types = {CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH, CUgraphNodeType.CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            CUgraphNodeType.CU_GRAPH_NODE_TYPE_EVENT_RECORD};
        for (int type : types) {
            for (boolean ofAnotherKind : new boolean[] {false, true}) {
                refuse("must have been created", (rig, guest) -> {
                    long stream = guest.createStream();
                    add(guest, create(guest), node(0, type,
                        bytes(8).putLong(ofAnotherKind ? stream : stream + 99).array()));
                });
            }
        }
    }

    @Test
    void shouldRefuseFreeOfMemoryThatNoGraphAllocated() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            for (long address : new long[] {memory, memory + 8, 0, 4096, -1}) {
                assertEquals(INVALID_VALUE, outcome(guest, node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE,
                    bytes(8).putLong(address).array())), "address=" + address);
            }
        });
    }

    @Test
    void shouldRefuseNodeShorterThanItsType() throws IOException {
        for (int length = 0; length < HwsGraphKernel.BYTES; length += 8) {
            byte[] body = new byte[length];
            refuse("a node's length must fit its type", (rig, guest) -> add(guest, create(guest),
                node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, body)));
        }
    }

    /** A copy node between the device and the guest's region. */
    private static byte[] regionCopy(long toPlace, long to, long fromPlace, long from, long width, long rows,
        long pitch) {
        ByteBuffer body = bytes(HwsGraphCopy.BYTES);
        body.putLong(toPlace).putLong(to).putLong(pitch).putLong(rows).putLong(0).putLong(0).putLong(0);
        body.putLong(fromPlace).putLong(from).putLong(pitch).putLong(rows).putLong(0).putLong(0).putLong(0);
        body.putLong(width).putLong(rows).putLong(1);
        return node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY, body.array());
    }

    @Test
    void shouldCopyFromTheWholeOfTheRegionsHeap() throws IOException {
        session((rig, guest) -> {
            RegionGeometry region = rig.region().geometry();
            long end = region.heapOffset() + region.heapBytes();
            rig.region().memory().set(ValueLayout.JAVA_BYTE, end - 1, (byte) 9);
            long memory = guest.allocate(ALLOCATED_BYTES);
            long graph = create(guest);
            add(guest, graph, regionCopy(DEVICE, memory, REGION, end - 64, 64, 1, 64));
            launch(guest, executable(guest, graph));
            assertEquals(9, guest.read(memory, 64, 0)[63]);
        });
    }

    @Test
    void shouldRefuseGraphsCopyThatLeavesTheRegionsHeap() throws IOException {
        RegionGeometry region = RegionGeometry.of(RegionPipe.REGION_BYTES,
            RegionPipe.SLOTS);
        long heap = region.heapOffset();
        long end = heap + region.heapBytes();
        // offset, width, rows, pitch; before the heap lie other processes' rings and the host's pages
        long[][] places = {{0, 64, 1, 64}, {heap - 1, 64, 1, 64}, {heap - 64, 64, 1, 64}, {end - 63, 64, 1, 64},
            {end, 1, 1, 1}, {end - 64, 64, 2, 64}, {end - 128, 64, 2, 128}, {-64, 64, 1, 64},
            {Long.MIN_VALUE, 64, 1, 64}, {heap, region.heapBytes() + 1, 1, region.heapBytes() + 1}};
        for (long[] place : places) {
            for (boolean write : new boolean[] {false, true}) {
                refuse("in the region's heap", (rig, guest) -> {
                    long memory = guest.allocate(8 << 20);
                    add(guest, create(guest), write
                        ? regionCopy(REGION, place[0], DEVICE, memory, place[1], place[2], place[3])
                        : regionCopy(DEVICE, memory, REGION, place[0], place[1], place[2], place[3]));
                });
            }
        }
    }

    @Test
    void shouldRefuseGraphsCopyThatIsShiftedInTheRegion() throws IOException {
        long heap = RegionGeometry.of(RegionPipe.REGION_BYTES, RegionPipe.SLOTS).heapOffset();
        for (long[] shift : new long[][] {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {-1, 0, 0}}) {
            refuse("in the region's heap", (rig, guest) -> add(guest, create(guest),
                copyNode(end(DEVICE, guest.allocate(ALLOCATED_BYTES)),
                    new long[] {REGION, heap, 128, 1, shift[0], shift[1], shift[2]}, 64, 1, 1)));
        }
    }

    @Test
    void shouldRefuseGraphsCopyThatLeavesTheGuestsAllocation() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(ALLOCATED_BYTES);
            long source = rig.region().geometry().heapOffset();
            // address, width, rows, pitch
            long[][] places = {{memory - 1, 64, 1, 64}, {memory + ALLOCATED_BYTES - 63, 64, 1, 64},
                {memory + ALLOCATED_BYTES, 1, 1, 1}, {memory, 64, 65, 64}, {memory, 64, 33, 128}, {-64, 64, 1, 64},
                {4096, 64, 1, 64}};
            for (long[] place : places) {
                long graph = create(guest);
                add(guest, graph, regionCopy(DEVICE, place[0], REGION, source, place[1], place[2], place[3]));
                assertEquals(INVALID_VALUE, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i32(0),
                    Arrays.toString(place));
                assertEquals(INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status());
            }
        });
    }
}
