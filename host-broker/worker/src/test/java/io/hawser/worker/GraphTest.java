package io.hawser.worker;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsGraphCopy;
import io.hawser.cuda.generated.HwsGraphEdge;
import io.hawser.cuda.generated.HwsGraphEnd;
import io.hawser.cuda.generated.HwsGraphKernel;
import io.hawser.cuda.generated.HwsGraphMemset;
import io.hawser.cuda.generated.HwsGraphNode;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Graph calls: blobs, callbacks, resources that are kept and released, and records that no correct guest sends. */
@Timeout(300)
@ParameterizedClass
@EnumSource(Carrier.class)
class GraphTest {
    private static final int BYTES = 64;
    private static final int DEVICE = 0;
    private static final int GUEST = 2;

    @Parameter
    private Carrier carrier;

    /** The calls of a test in a session. */
    @FunctionalInterface
    private interface Story {
        void run(Guest guest, long graph) throws IOException;
    }

    private void session(Story story) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            long graph = create(rig.guest());
            story.run(rig.guest(), graph);
            rig.guest().close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    private void refuse(String reason, Story attack) throws IOException {
        try (Rig rig = Rig.withGuest(carrier)) {
            attack.run(rig.guest(), create(rig.guest()));
            String told = rig.guest().reasonOfLoss();
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
            rig.guest().close();
            rig.expect("ended");
            assertTrue(!rig.join(), "a refused guest is an error");
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    static long create(Guest guest) throws IOException {
        long graph = guest.newId(HandleKind.GRAPH);
        guest.send(CudaOpcodes.hwsGraphCreate, 0, graph, 0);
        return graph;
    }

    static ByteBuffer bytes(int count) {
        return ByteBuffer.allocate(count).order(ByteOrder.LITTLE_ENDIAN);
    }

    static byte[] node(int index, int type, byte[] body, int... dependencies) {
        ByteBuffer out = bytes(HwsGraphNode.BYTES + dependencies.length * HwsGraphEdge.BYTES + body.length);
        out.putInt(index).putInt(type).putInt(dependencies.length).putInt(body.length).putLong(0);
        for (int dependency : dependencies) {
            out.putInt(dependency).putInt(0);
        }
        return out.put(body).array();
    }

    private static byte[] fill(int index, long address, int value, int... dependencies) {
        ByteBuffer body = bytes(HwsGraphMemset.BYTES);
        body.putLong(address).putLong(0).putLong(BYTES).putLong(1).putInt(value).putInt(1);
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET, body.array(), dependencies);
    }

    private static byte[] host(int index, long callbackId, int... dependencies) {
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST, bytes(8).putLong(callbackId).array(), dependencies);
    }

    private static byte[] copy(int index, int toPlace, long to, int fromPlace, long from, int... dependencies) {
        ByteBuffer body = bytes(HwsGraphCopy.BYTES);
        for (long[] end : new long[][] {{toPlace, to}, {fromPlace, from}}) {
            long pitch = end[0] == GUEST ? 0 : BYTES;
            long height = end[0] == GUEST ? 0 : 1;
            body.putLong(end[0]).putLong(end[1]).putLong(pitch).putLong(height).putLong(0).putLong(0).putLong(0);
        }
        body.putLong(BYTES).putLong(1).putLong(1);
        assertEquals(2 * HwsGraphEnd.BYTES + 3 * Long.BYTES, HwsGraphCopy.BYTES);
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY, body.array(), dependencies);
    }

    private static byte[] fault(int index, long function, int... dependencies) {
        ByteBuffer body = bytes(HwsGraphKernel.BYTES);
        body.putLong(function);
        for (int i = 0; i < 6; i++) {
            body.putInt(1);
        }
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, body.array(), dependencies);
    }

    private static void blob(Guest guest, int opcode, long graph, int count, byte[]... nodes) throws IOException {
        guest.send(opcode, 0, out -> {
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            Arrays.stream(nodes).forEach(all::writeBytes);
            out.fixed(24);
            out.i64(0, graph);
            out.i32(8, count);
            out.i32(12, all.size());
            out.buffer(16, MemorySegment.ofArray(all.toByteArray()));
        });
    }

    static void add(Guest guest, long graph, byte[]... nodes) throws IOException {
        blob(guest, CudaOpcodes.hwsGraphAddNodes, graph, nodes.length, nodes);
    }

    static Received instantiate(Guest guest, long exec, long graph) throws IOException {
        return guest.call(CudaOpcodes.hwsGraphInstantiate, exec, graph, 0);
    }

    static long executable(Guest guest, long graph) throws IOException {
        long exec = guest.newId(HandleKind.GRAPH_EXEC);
        Received reply = instantiate(guest, exec, graph);
        assertEquals(0, reply.status());
        assertEquals(0, reply.i32(0), "outcome");
        return exec;
    }

    static void launch(Guest guest, long exec) throws IOException {
        guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, exec, 0);
    }

    private static void expectCallback(Guest guest, long id, int status) throws IOException {
        Received callback = guest.next();
        assertEquals(RecordLayout.CONTROL_CALLBACK, callback.opcode());
        assertEquals(id, callback.i64(RecordLayout.CALLBACK_CALLBACK_ID_OFFSET));
        assertEquals(status, callback.i32(RecordLayout.CALLBACK_STATUS_OFFSET));
    }

    private static void done(Guest guest, long id) throws IOException {
        guest.send(RecordLayout.CONTROL_CALLBACK_DONE, 0, id);
    }

    @Test
    void shouldExecuteNodesAtEachLaunch() throws IOException {
        session((guest, graph) -> {
            long first = guest.allocate(BYTES);
            long second = guest.allocate(BYTES);
            add(guest, graph, fill(3, first, 7), copy(4, DEVICE, second, DEVICE, first, 3));
            long exec = executable(guest, graph);
            for (int i = 0; i < 3; i++) {
                guest.write(second, 0, new byte[BYTES]);
                launch(guest, exec);
                byte[] expected = new byte[BYTES];
                Arrays.fill(expected, (byte) 7);
                assertArrayEquals(expected, guest.read(second, BYTES, 0));
            }
        });
    }

    @Test
    void shouldCallGuestOncePerLaunchAndWaitForEachAnswer() throws IOException {
        session((guest, graph) -> {
            add(guest, graph, host(0, 50));
            long exec = executable(guest, graph);
            launch(guest, exec);
            launch(guest, exec);
            long synchronised = guest.send(Guest.CTX_SYNCHRONIZE, Guest.REPLY);
            expectCallback(guest, 50, 0);
            done(guest, 50);
            expectCallback(guest, 50, 0);
            done(guest, 50);
            assertEquals(0, guest.replyTo(synchronised).status());
        });
    }

    @Test
    void shouldCopyTheGuestsOwnMemory() throws IOException {
        session((guest, graph) -> {
            long device = guest.allocate(BYTES);
            add(guest, graph, copy(0, DEVICE, device, GUEST, 60), copy(1, GUEST, 61, DEVICE, device, 0));
            long exec = executable(guest, graph);
            for (int launch = 1; launch <= 2; launch++) {
                byte[] data = new byte[BYTES];
                Arrays.fill(data, (byte) launch);
                launch(guest, exec);
                expectCallback(guest, 60, 0);
                guest.send(CudaOpcodes.hwsGraphNodeWrite, 0, out -> {
                    out.fixed(32);
                    out.i64(0, 60);
                    out.i64(16, BYTES);
                    out.buffer(24, MemorySegment.ofArray(data));
                });
                done(guest, 60);
                expectCallback(guest, 61, 0);
                Received read = guest.call(CudaOpcodes.hwsGraphNodeRead, 61, 0, BYTES);
                assertArrayEquals(data, read.buffer(8, 0));
                done(guest, 61);
                assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            }
        });
    }

    @Test
    void shouldCallGuestWithErrorForNodesThatNeverRun() throws IOException {
        session((guest, graph) -> {
            long function = guest.function(guest.loadImage("fault"), "fault");
            add(guest, graph, fault(0, function), host(1, 70, 0));
            long exec = executable(guest, graph);
            launch(guest, exec);
            expectCallback(guest, 70, 700);
            done(guest, 70);
            launch(guest, exec); // rejected at once, but the callback reports it too
            expectCallback(guest, 70, 700);
            done(guest, 70);
        });
    }

    @Test
    void shouldReportFailedNodesAtInstantiation() throws IOException {
        session((guest, graph) -> {
            add(guest, graph, fill(0, 4096, 7), host(1, 80, 0));
            long exec = guest.newId(HandleKind.GRAPH_EXEC);
            assertEquals(1, instantiate(guest, exec, graph).i32(0),
                "CUDA_ERROR_INVALID_VALUE for an address without memory");
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status(), "deferred as well");
        });
    }

    @Test
    void shouldNotLaunchGraphsThatUseFreedMemory() throws IOException {
        session((guest, graph) -> {
            long device = guest.allocate(BYTES);
            add(guest, graph, fill(0, device, 7));
            long exec = executable(guest, graph);
            launch(guest, exec);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            guest.send(Guest.MEM_FREE, 0, device);
            launch(guest, exec);
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    @Test
    void shouldFinishLaunchOfDestroyedGraph() throws IOException {
        session((guest, graph) -> {
            long device = guest.allocate(BYTES);
            add(guest, graph, copy(0, GUEST, 90, DEVICE, device));
            long exec = executable(guest, graph);
            launch(guest, exec);
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            guest.send(CudaOpcodes.hwsGraphExecDestroy, 0, exec);
            expectCallback(guest, 90, 0);
            assertEquals(0, guest.call(CudaOpcodes.hwsGraphNodeRead, 90, 0, BYTES).status());
            done(guest, 90);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    @Test
    void shouldKeepGraphMemoryUntilItsLastUserIsGone() throws IOException {
        session((guest, graph) -> {
            Received reply = guest.call(CudaOpcodes.hwsGraphAddAlloc, out -> {
                out.fixed(40);
                out.i64(0, graph);
                out.i64(16, BYTES);
            });
            assertEquals(0, reply.status());
            long address = reply.i64(0);
            add(guest, graph, fill(1, address, 3, 0));
            long exec = executable(guest, graph);
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            guest.write(address, 0, new byte[BYTES]);
            guest.send(CudaOpcodes.hwsGraphExecDestroy, 0, exec);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            guest.write(address, 0, new byte[BYTES]);
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status(), "the address belongs to no memory any more");
        });
    }

    private static Received addAlloc(Guest guest, long graph, int index, long bytes, int... dependencies)
        throws IOException {
        return guest.call(CudaOpcodes.hwsGraphAddAlloc, out -> {
            ByteBuffer edges = bytes(dependencies.length * HwsGraphEdge.BYTES);
            Arrays.stream(dependencies).forEach(dependency -> edges.putInt(dependency).putInt(0));
            out.fixed(40);
            out.i64(0, graph);
            out.i32(8, index);
            out.i64(16, bytes);
            out.i32(24, dependencies.length);
            out.buffer(28, MemorySegment.ofArray(edges.array()));
        });
    }

    private static byte[] free(int index, long address, int... dependencies) {
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEM_FREE, bytes(8).putLong(address).array(),
            dependencies);
    }

    private static int writeTo(Guest guest, long address, int bytes) throws IOException {
        guest.write(address, 0, new byte[bytes]);
        return guest.call(Guest.CTX_SYNCHRONIZE).status();
    }

    /** NVIDIA's driver gives memory that a node has freed to later nodes of the graph, in whole or in part. */
    @Test
    void shouldTrackMemoryThatNodesUseOneAfterAnother() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 3 * BYTES)) {
            Guest guest = rig.guest();
            long graph = create(guest);
            long address = addAlloc(guest, graph, 0, 2 * BYTES).i64(0);
            add(guest, graph, fill(1, address, 1, 0), free(2, address, 1));
            assertEquals(address, addAlloc(guest, graph, 3, 2 * BYTES, 2).i64(0), "the fixture reuses it");
            add(guest, graph, free(4, address, 3));
            assertEquals(address, addAlloc(guest, graph, 5, BYTES, 4).i64(0), "half of it");
            assertEquals(address + BYTES, addAlloc(guest, graph, 6, BYTES, 4).i64(0), "the other half");
            add(guest, graph, fill(7, address + BYTES, 2, 6), free(8, address + BYTES, 7));
            long exec = executable(guest, graph);
            launch(guest, exec);
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            guest.send(CudaOpcodes.hwsGraphExecDestroy, 0, exec);
            assertEquals(0, writeTo(guest, address, BYTES), "memory that the launch has left");
            assertEquals(1, writeTo(guest, address + BYTES, BYTES), "memory that no node has any more");
            assertEquals(0, guest.call(CudaOpcodes.cuMemFree_v2, address).status());
            assertEquals(1, writeTo(guest, address, BYTES));
            guest.allocate(3 * BYTES); // the whole quota is available again
        }
    }

    @Test
    void shouldCountMemoryThatNodesShareOnce() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 3 * BYTES)) {
            Guest guest = rig.guest();
            long graph = create(guest);
            long address = addAlloc(guest, graph, 0, 2 * BYTES).i64(0);
            assertEquals(2, addAlloc(guest, graph, 1, 2 * BYTES, 0).status(), "nothing has been freed");
            add(guest, graph, free(2, address, 0));
            for (int index = 3; index < 9; index += 2) {
                assertEquals(address, addAlloc(guest, graph, index, 2 * BYTES, index - 1).i64(0));
                add(guest, graph, free(index + 1, address, index));
            }
            long rest = guest.allocate(BYTES);
            executable(guest, graph);
            guest.send(CudaOpcodes.cuMemFree_v2, 0, rest);
            // More than the free and the freed memory together: the graph can no longer be instantiated.
            assertEquals(2, addAlloc(guest, graph, 9, 3 * BYTES + 1, 8).status());
            assertEquals(2, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i32(0));
        }
    }

    @Test
    void shouldRemoveNoNodeOfAGraphWithMemory() throws IOException {
        try (Rig rig = Rig.withGuest(carrier, 2 * BYTES)) {
            Guest guest = rig.guest();
            long graph = create(guest);
            addAlloc(guest, graph, 0, 2 * BYTES);
            guest.send(CudaOpcodes.hwsGraphRemoveNode, 0, graph, 0);
            assertEquals(801, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(2, addAlloc(guest, create(guest), 0, BYTES).status(), "the node's memory still counts");
        }
    }

    private static Received setInExec(Guest guest, long exec, long graph, byte[] node) throws IOException {
        return guest.call(CudaOpcodes.hwsGraphExecSetNode, out -> {
            out.fixed(24);
            out.i64(0, exec);
            out.i64(8, graph);
            out.i32(16, node.length);
            out.buffer(20, MemorySegment.ofArray(node));
        });
    }

    @Test
    void shouldSetNodesOfGraphsAndExecutableGraphs() throws IOException {
        session((guest, graph) -> {
            long device = guest.allocate(BYTES);
            add(guest, graph, fill(0, device, 1), host(1, 110, 0));
            long exec = executable(guest, graph);
            assertEquals(0, setInExec(guest, exec, graph, fill(0, device, 2)).status());
            assertEquals(0, setInExec(guest, exec, graph, host(1, 111)).status());
            assertEquals(1, setInExec(guest, exec, graph, host(0, 112)).status(), "of another type");
            assertEquals(1, setInExec(guest, exec, graph, fill(0, 4096, 2)).status(), "no memory of the guest");
            // A copy between two places in the guest travels as a host node, and can become a copy again.
            blob(guest, CudaOpcodes.hwsGraphSetNodes, graph, 1, copy(1, GUEST, 113, DEVICE, device));
            launch(guest, exec);
            expectCallback(guest, 111, 0);
            done(guest, 111);
            assertEquals(2, guest.read(device, BYTES, 0)[0]);
            long changed = executable(guest, graph);
            launch(guest, changed);
            expectCallback(guest, 113, 0);
            Received read = guest.call(CudaOpcodes.hwsGraphNodeRead, 113, 0, BYTES);
            assertEquals(1, read.buffer(8, 0)[BYTES - 1]);
            done(guest, 113);
            guest.send(CudaOpcodes.hwsGraphEnable, 0, out -> {
                out.fixed(24);
                out.i64(0, changed);
                out.i64(8, graph);
                out.i32(16, 1);
            });
            launch(guest, changed);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status(), "nothing calls the guest");
        });
    }

    @Test
    void shouldUpdateFromGraphOfSameTopology() throws IOException {
        session((guest, graph) -> {
            add(guest, graph, host(0, 120));
            long exec = executable(guest, graph);
            long other = create(guest);
            add(guest, other, host(4, 121));
            Received updated = guest.call(CudaOpcodes.hwsGraphExecUpdate, exec, other);
            assertEquals(0, updated.i32(0), "outcome");
            launch(guest, exec);
            expectCallback(guest, 121, 0);
            done(guest, 121);
            add(guest, other, host(5, 122));
            Received refused = guest.call(CudaOpcodes.hwsGraphExecUpdate, exec, other);
            assertEquals(910, refused.i32(0), "outcome: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE");
            assertEquals(2, refused.i32(4), "result: the topology changed");
            launch(guest, exec);
            expectCallback(guest, 121, 0);
            done(guest, 121);
        });
    }

    @Test
    void shouldSupportChildGraphs() throws IOException {
        session((guest, graph) -> {
            long inner = create(guest);
            add(guest, inner, host(0, 130));
            byte[] child = node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH, bytes(8).putLong(inner).array());
            add(guest, graph, child);
            long exec = executable(guest, graph);
            assertEquals(0, setInExec(guest, exec, inner, host(0, 131)).status(), "a node inside");
            launch(guest, exec);
            expectCallback(guest, 131, 0);
            done(guest, 131);
            long second = create(guest);
            add(guest, second, child);
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status(), "inside one node only");
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            add(guest, inner, host(1, 132));
            assertEquals(1, guest.call(Guest.CTX_SYNCHRONIZE).status(), "destroyed with the graph that contained it");
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, inner);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        });
    }

    @Test
    void shouldEndWhileNodesWaitForTheGuest() throws IOException {
        session((guest, graph) -> {
            long device = guest.allocate(BYTES);
            add(guest, graph, copy(0, DEVICE, device, GUEST, 140), host(1, 141, 0));
            long exec = executable(guest, graph);
            launch(guest, exec);
            launch(guest, exec);
            expectCallback(guest, 140, 0); // the session ends without an acknowledgement
        });
    }

    @Test
    void shouldRefuseBlobsThatAreCutAnywhere() throws IOException {
        byte[] whole = host(0, 100);
        for (int length = 8; length < whole.length; length += 8) {
            byte[] cut = Arrays.copyOf(whole, length);
            refuse("a node", (guest, graph) -> add(guest, graph, cut));
        }
    }

    @Test
    void shouldRefuseNodesThatNoCorrectGuestSends() throws IOException {
        refuse("as many nodes as announced",
            (guest, graph) -> blob(guest, CudaOpcodes.hwsGraphAddNodes, graph, 2, host(0, 100)));
        refuse("above all others", (guest, graph) -> add(guest, graph, host(5, 100), host(5, 101)));
        refuse("a node must exist", (guest, graph) -> add(guest, graph, host(0, 100, 1)));
        refuse("a type that the wire supports", (guest, graph) -> add(guest, graph,
            node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL, new byte[0])));
        refuse("a node's length", (guest, graph) -> add(guest, graph,
            node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST, new byte[16])));
        refuse("must have been created", (guest, graph) -> add(guest, graph, fault(0, 3L << 40 | 999)));
        refuse("an end on the device", (guest, graph) -> add(guest, graph, copy(0, GUEST, 100, GUEST, 101)));
        refuse("in the region's heap", (guest, graph) -> add(guest, graph,
            copy(0, DEVICE, guest.allocate(BYTES), 1, 1L << 60)));
        refuse("keep its kind and length", (guest, graph) -> add(guest, graph, host(0, 100),
            copy(1, GUEST, 100, DEVICE, guest.allocate(BYTES))));
        refuse("an unacknowledged callback", (guest, graph) -> {
            add(guest, graph, copy(0, GUEST, 100, DEVICE, guest.allocate(BYTES)));
            guest.send(CudaOpcodes.hwsGraphNodeRead, Guest.REPLY, 100, 0, BYTES);
        });
        refuse("CALLBACK_DONE must answer", (guest, graph) -> {
            add(guest, graph, host(0, 100));
            done(guest, 100);
        });
    }

    @Test
    void shouldRefuseLengthsOfKernelsThatAreNot() throws IOException {
        for (int[] lengths : new int[][] {{-1, 0}, {8, 0}, {0, 72}, {0, 8}, {0, -72}, {32765, 0}}) {
            refuse("parameters and attributes", (guest, graph) -> {
                byte[] kernel = fault(0, guest.function(guest.loadImage("fault"), "fault"));
                ByteBuffer.wrap(kernel).order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(HwsGraphNode.BYTES + HwsGraphKernel.PARAMS_BYTES_OFFSET, lengths[0])
                    .putInt(HwsGraphNode.BYTES + HwsGraphKernel.ATTRIBUTES_BYTES_OFFSET, lengths[1]);
                add(guest, graph, kernel);
            });
        }
    }
}
