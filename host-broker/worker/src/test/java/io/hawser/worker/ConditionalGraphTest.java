package io.hawser.worker;

import static io.hawser.worker.GraphTest.add;
import static io.hawser.worker.GraphTest.bytes;
import static io.hawser.worker.GraphTest.create;
import static io.hawser.worker.GraphTest.instantiate;
import static io.hawser.worker.GraphTest.node;
import static io.hawser.worker.HostileLaunchTest.refuse;
import static io.hawser.worker.HostileLaunchTest.session;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUgraphConditionalNodeType;
import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsGraphMemset;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.session.HandleTable;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Conditions and conditional nodes, and executable graphs for kernels: ids, bounds, and ends of bodies. */
@Timeout(300)
class ConditionalGraphTest {
    private static final int INVALID_VALUE = 1;
    private static final int SWITCH = CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH;

    private static long condition(Guest guest, long graph) throws IOException {
        Received reply = guest.call(CudaOpcodes.hwsGraphAddCondition, graph, guest.context(), 0);
        assertEquals(0, reply.status());
        return reply.i64(0);
    }

    private static Received conditional(Guest guest, long graph, int index, long condition, long... bodies)
        throws IOException {
        return guest.call(CudaOpcodes.hwsGraphAddConditional, request(guest, graph, index, condition, bodies));
    }

    private static Consumer<RecordWriter> request(Guest guest, long graph, int index, long condition, long... bodies) {
        return out -> {
            ByteBuffer ids = bytes(bodies.length * Long.BYTES);
            Arrays.stream(bodies).forEach(ids::putLong);
            out.fixed(56);
            out.i64(0, graph);
            out.i64(8, guest.context());
            out.i32(16, index);
            out.i64(24, condition);
            out.i32(32, SWITCH);
            out.i32(44, bodies.length);
            out.buffer(48, MemorySegment.ofArray(ids.array()));
        };
    }

    private static byte[] fill(long address, int value) {
        ByteBuffer body = bytes(HwsGraphMemset.BYTES);
        body.putLong(address).putLong(0).putLong(16).putLong(1).putInt(value).putInt(1);
        return node(0, CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET, body.array());
    }

    private static long graphId(Guest guest) {
        return guest.newId(HandleKind.GRAPH);
    }

    @Test
    void shouldEndBodiesWithTheirGraph() throws IOException {
        session((rig, guest) -> {
            long memory = guest.allocate(64);
            long graph = create(guest);
            long condition = condition(guest, graph);
            long[] bodies = {graphId(guest), graphId(guest)};
            assertEquals(0, conditional(guest, graph, 0, condition, bodies).status());
            add(guest, bodies[1], fill(memory, 1));
            long inside = graphId(guest);
            assertEquals(0, conditional(guest, bodies[0], 0, condition, inside).status(), "nested");
            assertEquals(0, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i32(0));
            guest.send(CudaOpcodes.hwsGraphDestroy, 0, graph);
            add(guest, bodies[1], fill(memory, 1));
            assertEquals(INVALID_VALUE, guest.call(Guest.CTX_SYNCHRONIZE).status(), "the body has ended");
            assertEquals(INVALID_VALUE, conditional(guest, inside, 0, condition, graphId(guest)).status());
        });
    }

    @Test
    void shouldRefuseConditionsThatWereNotMadeForTheGraph() throws IOException {
        session((rig, guest) -> {
            long graph = create(guest);
            long other = create(guest);
            long condition = condition(guest, graph);
            long inner = graphId(guest);
            assertEquals(INVALID_VALUE, conditional(guest, other, 0, condition, inner).status(), "another graph's");
            assertEquals(INVALID_VALUE, conditional(guest, graph, 0, condition + 1, inner).status(), "unknown");
            assertEquals(INVALID_VALUE, conditional(guest, graph, 0, 0, inner).status(), "zero");
            assertEquals(INVALID_VALUE, conditional(guest, graph, 0, condition).status(), "no body");
            assertEquals(0, conditional(guest, graph, 0, condition, inner).status(), "nothing was left behind");
            assertEquals(0, conditional(guest, inner, 0, condition, graphId(guest)).status(), "an outer graph's");
            assertEquals(INVALID_VALUE, guest.call(CudaOpcodes.hwsGraphAddCondition, graph, guest.context(), 2L << 32)
                .status(), "unknown flags");
        });
    }

    private static void refuseBodies(IntFunction<long[]> bodies) throws IOException {
        refuse("have an id of its kind", (rig, guest) -> {
            long graph = create(guest);
            long condition = condition(guest, graph);
            guest.send(CudaOpcodes.hwsGraphAddConditional, 0,
                request(guest, graph, 0, condition, bodies.apply((int) graph)));
        });
    }

    @Test
    void shouldRefuseIdsOfBodiesThatAreNotNewGraphs() throws IOException {
        refuseBodies(graph -> new long[] {HandleTable.id(HandleKind.GRAPH, graph)});
        refuseBodies(graph -> new long[] {HandleTable.id(HandleKind.GRAPH, graph + 1),
            HandleTable.id(HandleKind.GRAPH, graph + 1)});
        refuseBodies(graph -> new long[] {HandleTable.id(HandleKind.EVENT, 1)});
        refuseBodies(graph -> new long[] {0});
        refuseBodies(graph -> new long[] {-1});
    }

    @Test
    void shouldGiveTheBackendsHandleOnlyOfGraphsForKernels() throws IOException {
        session((rig, guest) -> {
            long graph = create(guest);
            long exec = guest.newId(HandleKind.GRAPH_EXEC);
            Received reply = guest.call(CudaOpcodes.hwsGraphInstantiate, exec, graph, 4);
            assertEquals(0, reply.i32(0));
            assertNotEquals(0, reply.i64(24));
            assertEquals(0, instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i64(24));
            assertTrue(guest.call(CudaOpcodes.hwsGraphInstantiate, guest.newId(HandleKind.GRAPH_EXEC), graph, 2).i32(0)
                != 0, "the guest uploads by itself");
        });
    }
}
