package io.hawser.worker;

import static io.hawser.worker.GraphTest.add;
import static io.hawser.worker.GraphTest.bytes;
import static io.hawser.worker.GraphTest.create;
import static io.hawser.worker.GraphTest.executable;
import static io.hawser.worker.GraphTest.instantiate;
import static io.hawser.worker.GraphTest.launch;
import static io.hawser.worker.GraphTest.node;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CUgraphNodeType;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.HwsGraphKernel;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Guest.Received;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Launches and graph nodes with too few parameters, or with addresses that do not belong to the guest. One carrier is
 * enough, because the checks read a record after any carrier has delivered it.
 */
@Timeout(300)
class HostileLaunchTest {
    private static final int INVALID_VALUE = 1;
    private static final int NOT_SUPPORTED = 801;
    private static final int PARAMS_BYTES = 16; // parameters of the kernel fill: an address, a count and a value
    private static final int MAX_PARAMS_BYTES = 32764; // PTX ISA 8.1
    private static final int ALLOCATED_BYTES = 4096;
    private static final int ATTRIBUTE_BYTES = 72; // CUDA 13.0 cuda.h, CUlaunchAttribute
    private static final int ACCESS_POLICY_WINDOW = 1; // CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
    private static final int PROGRAMMATIC_EVENT = 7; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT: holds a handle
    private static final int PRIORITY = 8; // CU_LAUNCH_ATTRIBUTE_PRIORITY

    /** The calls of a test in a session. */
    @FunctionalInterface
    interface Story {
        void run(Rig rig, Guest guest) throws IOException;
    }

    static void session(Story story) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            story.run(rig, rig.guest());
            rig.guest().close();
            rig.expect("ended");
            assertTrue(rig.join());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    static void refuse(String reason, Story attack) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.SHM)) {
            attack.run(rig, rig.guest());
            // A session that accepted the record replies to this, so the test does not wait for ever.
            rig.guest().send(Guest.CTX_SYNCHRONIZE, Guest.REPLY);
            Received first = rig.guest().next();
            assertEquals(RecordLayout.CONTROL_LOST, first.opcode(), "the session went on");
            String told = new String(first.buffer(RecordLayout.LOST_FIXED_BYTES, RecordLayout.LOST_REASON_OFFSET),
                StandardCharsets.UTF_8);
            assertTrue(told.contains(reason), () -> "expected: " + reason + " told: " + told);
            rig.guest().close();
            rig.expect("ended");
            assertEquals(1, rig.lastStats().path("refusedRecords").asLong());
            assertFalse(rig.join(), "a refused guest is an error");
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    private static long fill(Guest guest) throws IOException {
        return guest.function(guest.loadImage("fill"), "fill");
    }

    /** Parameters of the kernel fill, truncated. */
    private static byte[] params(long address, int length) {
        return Arrays.copyOf(bytes(PARAMS_BYTES).putLong(address).putInt(1).putInt(7).array(), length);
    }

    private static byte[] attribute(int id, long first, long second) {
        return bytes(ATTRIBUTE_BYTES).putInt(id).putInt(0).putLong(first).putLong(second).array();
    }

    private static int launchKernel(Guest guest, long function, byte[] params, byte[] attributes) throws IOException {
        sendLaunch(guest, function, params, attributes);
        return guest.call(Guest.CTX_SYNCHRONIZE).status();
    }

    private static void sendLaunch(Guest guest, long function, byte[] params, byte[] attributes) throws IOException {
        guest.send(Guest.LAUNCH, Guest.CREDITED, out -> {
            out.fixed(64);
            out.i64(0, function);
            for (int at = 16; at < 40; at += 4) {
                out.i32(at, 1);
            }
            out.i32(48, params.length);
            out.buffer(52, MemorySegment.ofArray(params));
            out.i32(56, attributes.length);
            out.buffer(60, MemorySegment.ofArray(attributes));
        });
    }

    private static byte[] kernelNode(int index, long function, byte[] params, byte[] attributes) {
        int paramsSpace = params.length + 7 & -8;
        ByteBuffer body = bytes(HwsGraphKernel.BYTES + paramsSpace + attributes.length);
        body.putLong(HwsGraphKernel.FUNCTION_OFFSET, function);
        for (int at : new int[] {HwsGraphKernel.GRID_DIM_X_OFFSET, HwsGraphKernel.GRID_DIM_Y_OFFSET,
            HwsGraphKernel.GRID_DIM_Z_OFFSET, HwsGraphKernel.BLOCK_DIM_X_OFFSET, HwsGraphKernel.BLOCK_DIM_Y_OFFSET,
            HwsGraphKernel.BLOCK_DIM_Z_OFFSET}) {
            body.putInt(at, 1);
        }
        body.putInt(HwsGraphKernel.PARAMS_BYTES_OFFSET, params.length);
        body.putInt(HwsGraphKernel.ATTRIBUTES_BYTES_OFFSET, attributes.length);
        body.put(HwsGraphKernel.BYTES, params).put(HwsGraphKernel.BYTES + paramsSpace, attributes);
        return node(index, CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL, body.array());
    }

    /** Adds a kernel node to a new graph; returns the CUresult. */
    private static int addKernel(Guest guest, long function, byte[] params, byte[] attributes) throws IOException {
        long graph = create(guest);
        add(guest, graph, kernelNode(0, function, params, attributes));
        int outcome = instantiate(guest, guest.newId(HandleKind.GRAPH_EXEC), graph).i32(0);
        assertEquals(outcome, guest.call(Guest.CTX_SYNCHRONIZE).status(), "deferred as well");
        return outcome;
    }

    @Test
    void shouldRefuseLaunchWithFewerParametersThanTheKernels() throws IOException {
        session((rig, guest) -> {
            long function = fill(guest);
            long memory = guest.allocate(ALLOCATED_BYTES);
            for (int length = 0; length < PARAMS_BYTES; length++) {
                assertEquals(INVALID_VALUE, launchKernel(guest, function, params(memory, length), new byte[0]),
                    "length=" + length);
            }
            assertEquals(0, launchKernel(guest, function, params(memory, PARAMS_BYTES), new byte[0]));
            assertEquals(7, guest.read(memory, 4, 0)[0]);
        });
    }

    @Test
    void shouldRefuseGraphsKernelWithFewerParametersThanTheKernels() throws IOException {
        session((rig, guest) -> {
            long function = fill(guest);
            long memory = guest.allocate(ALLOCATED_BYTES);
            for (int length = 0; length < PARAMS_BYTES; length++) {
                assertEquals(INVALID_VALUE, addKernel(guest, function, params(memory, length), new byte[0]),
                    "length=" + length);
            }
            long graph = create(guest);
            add(guest, graph, kernelNode(0, function, params(memory, PARAMS_BYTES), new byte[0]));
            launch(guest, executable(guest, graph));
            assertEquals(7, guest.read(memory, 4, 0)[0]);
        });
    }

    @Test
    void shouldRefuseGraphsKernelWithMoreParametersThanAnyKernelHas() throws IOException {
        session((rig, guest) -> assertEquals(0, addKernel(guest, fill(guest), new byte[MAX_PARAMS_BYTES],
            new byte[0])));
        refuse("parameters and attributes", (rig, guest) -> add(guest, create(guest),
            kernelNode(0, fill(guest), new byte[MAX_PARAMS_BYTES + 1], new byte[0])));
    }

    /** Address windows that a guest may not use, each with its length. */
    private static long[][] foreignWindows(long memory) {
        return new long[][] {{memory - 1, 1}, {memory - 1, 2}, {memory, ALLOCATED_BYTES + 1},
            {memory + ALLOCATED_BYTES, 1}, {memory + 8, ALLOCATED_BYTES}, {memory, -1}, {memory, Long.MIN_VALUE},
            {4096, 64}, {0, 1}, {-1, 1}};
    }

    @Test
    void shouldRefuseLaunchWhoseWindowIsNotTheGuests() throws IOException {
        session((rig, guest) -> {
            long function = fill(guest);
            long memory = guest.allocate(ALLOCATED_BYTES);
            byte[] params = params(memory, PARAMS_BYTES);
            assertEquals(0, launchKernel(guest, function, params,
                attribute(ACCESS_POLICY_WINDOW, memory, ALLOCATED_BYTES)));
            for (long[] window : foreignWindows(memory)) {
                byte[] attribute = attribute(ACCESS_POLICY_WINDOW, window[0], window[1]);
                assertEquals(INVALID_VALUE, launchKernel(guest, function, params, attribute), Arrays.toString(window));
                ByteBuffer second = bytes(2 * ATTRIBUTE_BYTES).put(attribute(PRIORITY, 0, 0)).put(attribute);
                assertEquals(INVALID_VALUE, launchKernel(guest, function, params, second.array()),
                    "behind another: " + Arrays.toString(window));
                assertEquals(INVALID_VALUE, guest.call(CudaOpcodes.hwsOccupancyClusters, out -> {
                    out.fixed(48);
                    out.i64(0, function);
                    out.i32(36, attribute.length);
                    out.buffer(40, MemorySegment.ofArray(attribute));
                }).status(), "clusters: " + Arrays.toString(window));
            }
        });
    }

    @Test
    void shouldRefuseGraphsKernelWhoseWindowIsNotTheGuests() throws IOException {
        session((rig, guest) -> {
            long function = fill(guest);
            long memory = guest.allocate(ALLOCATED_BYTES);
            byte[] params = params(memory, PARAMS_BYTES);
            assertEquals(0, addKernel(guest, function, params,
                attribute(ACCESS_POLICY_WINDOW, memory, ALLOCATED_BYTES)));
            for (long[] window : foreignWindows(memory)) {
                assertEquals(INVALID_VALUE, addKernel(guest, function, params,
                    attribute(ACCESS_POLICY_WINDOW, window[0], window[1])), Arrays.toString(window));
            }
        });
    }

    @Test
    void shouldRefuseAttributesThatHoldHandles() throws IOException {
        session((rig, guest) -> {
            long function = fill(guest);
            byte[] params = params(guest.allocate(ALLOCATED_BYTES), PARAMS_BYTES);
            for (int id : new int[] {PROGRAMMATIC_EVENT, 12, 13, 15, 99, -1, Integer.MIN_VALUE}) {
                assertEquals(NOT_SUPPORTED, launchKernel(guest, function, params, attribute(id, 0, 0)), "id=" + id);
                assertEquals(NOT_SUPPORTED, addKernel(guest, function, params, attribute(id, 0, 0)), "id=" + id);
            }
        });
    }

    @Test
    void shouldRefuseAttributesThatAreNotWhole() throws IOException {
        for (int length : new int[] {8, ATTRIBUTE_BYTES - 8, ATTRIBUTE_BYTES + 8}) {
            refuse("launch attributes must be complete", (rig, guest) -> sendLaunch(guest, fill(guest),
                params(guest.allocate(ALLOCATED_BYTES), PARAMS_BYTES), new byte[length]));
        }
    }
}
