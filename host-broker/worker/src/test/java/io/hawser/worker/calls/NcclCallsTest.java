package io.hawser.worker.calls;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclRemoteError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSystemError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.nccl.HwsNcclKind;
import io.hawser.cuda.generated.nccl.HwsNcclMember;
import io.hawser.cuda.generated.nccl.HwsNcclOperation;
import io.hawser.cuda.generated.nccl.NcclOpcodes;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.EventFd;
import io.hawser.shm.turns.TurnPage;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapMath;
import io.hawser.worker.fixture.HeapNccl;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class NcclCallsTest {
    private static final int COUNT = 64;
    private static final int BYTES = COUNT * Float.BYTES;

    private static MemorySegment member(long comm, long context, int ranks, int rank) {
        MemorySegment member = MemorySegment.ofArray(new long[HwsNcclMember.BYTES / Long.BYTES]);
        member.set(ValueLayout.JAVA_LONG, HwsNcclMember.COMM_OFFSET, comm);
        member.set(ValueLayout.JAVA_LONG, HwsNcclMember.CONTEXT_OFFSET, context);
        member.set(ValueLayout.JAVA_INT, HwsNcclMember.RANKS_OFFSET, ranks);
        member.set(ValueLayout.JAVA_INT, HwsNcclMember.RANK_OFFSET, rank);
        member.set(ValueLayout.JAVA_BYTE, HwsNcclMember.ID_OFFSET, (byte) 1);
        return member;
    }

    private static long sendMake(Guest guest, MemorySegment... members) throws IOException {
        MemorySegment all = MemorySegment.ofArray(new byte[members.length * HwsNcclMember.BYTES]);
        for (int i = 0; i < members.length; i++) {
            all.asSlice((long) i * HwsNcclMember.BYTES).copyFrom(members[i]);
        }
        return guest.send(NcclOpcodes.hwsNcclMake, Guest.REPLY, out -> {
            out.fixed(8);
            out.buffer(0, all);
            out.i32(4, members.length);
        });
    }

    private static long make(Guest guest, int ranks, int rank) throws IOException {
        long id = guest.newId(HandleKind.NCCL);
        assertEquals(0, guest.replyTo(sendMake(guest, member(id, guest.context(), ranks, rank))).status());
        return id;
    }

    /** An operation, which a test changes. */
    private static MemorySegment operation(int kind, long comm, long send, long receive) {
        MemorySegment operation = MemorySegment.ofArray(new long[HwsNcclOperation.BYTES / Long.BYTES]);
        operation.set(ValueLayout.JAVA_INT, HwsNcclOperation.KIND_OFFSET, kind);
        operation.set(ValueLayout.JAVA_INT, HwsNcclOperation.DATATYPE_OFFSET, ncclDataType_t.ncclFloat32);
        operation.set(ValueLayout.JAVA_LONG, HwsNcclOperation.COUNT_OFFSET, COUNT);
        operation.set(ValueLayout.JAVA_LONG, HwsNcclOperation.COMM_OFFSET, comm);
        operation.set(ValueLayout.JAVA_LONG, HwsNcclOperation.SENDBUFF_OFFSET, send);
        operation.set(ValueLayout.JAVA_LONG, HwsNcclOperation.RECVBUFF_OFFSET, receive);
        return operation;
    }

    private static long send(Guest guest, MemorySegment operation, int flags) throws IOException {
        return guest.send(NcclOpcodes.hwsNcclRun, flags, out -> write(out, operation));
    }

    private static void write(RecordWriter out, MemorySegment operation) {
        out.fixed(HwsNcclOperation.BYTES);
        for (int at = 0; at < HwsNcclOperation.BYTES; at += Long.BYTES) {
            out.i64(at, operation.get(ValueLayout.JAVA_LONG, at));
        }
    }

    private static int run(Guest guest, MemorySegment operation) throws IOException {
        return guest.replyTo(send(guest, operation, Guest.REPLY | Guest.CREDITED)).status();
    }

    @Test
    void shouldServeOtherThreadsWhileRanksAreAwaited() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            assertEquals(22_903, guest.call(NcclOpcodes.ncclGetVersion).i32(0));
            HeapNccl nccl = HeapMath.ncclOf(rig.gpu());
            nccl.others = new CountDownLatch(1);
            long making = sendMake(guest, member(guest.newId(HandleKind.NCCL), guest.context(), 2, 1));
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertTrue(guest.allocate(BYTES) != 0);
            nccl.others.countDown();
            Guest.Received made = guest.replyTo(making);
            assertEquals(0, made.status());
            byte[] places = made.buffer(8, 0);
            assertEquals(List.of(2, 1), List.of((int) places[0], (int) places[4]));
        }
    }

    @Test
    void shouldRefuseMemoryThatIsNotTheSessions() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(BYTES);
            long twice = guest.allocate(2 * BYTES);
            long comm = make(guest, 2, 1);
            assertEquals(0, run(guest, operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, data, data)));
            assertEquals(0, run(guest, operation(HwsNcclKind.HWS_NCCL_ALL_GATHER, comm, data, twice)));
            assertEquals(0, run(guest, operation(HwsNcclKind.HWS_NCCL_REDUCE_SCATTER, comm, twice, data)));
            assertEquals(0, run(guest, operation(HwsNcclKind.HWS_NCCL_BROADCAST, comm, 0, data)), "not the root");
            assertEquals(0, run(guest, operation(HwsNcclKind.HWS_NCCL_REDUCE, comm, data, 0)), "not the root");
            for (long wrong : new long[] {0, -1, 8, data + Float.BYTES, Long.MIN_VALUE}) {
                assertEquals(ncclInvalidArgument,
                    run(guest, operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, wrong, data)));
                assertEquals(ncclInvalidArgument,
                    run(guest, operation(HwsNcclKind.HWS_NCCL_RECEIVE, comm, 0, wrong)));
            }
            assertEquals(ncclInvalidArgument, run(guest, operation(HwsNcclKind.HWS_NCCL_ALL_GATHER, comm, data, data)));
            MemorySegment factor = operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, data, data);
            factor.set(ValueLayout.JAVA_INT, HwsNcclOperation.REDUCTION_OFFSET, 5);
            factor.set(ValueLayout.JAVA_LONG, HwsNcclOperation.FACTOR_OFFSET, 4096);
            assertEquals(0, run(guest, factor), "a number");
            factor.set(ValueLayout.JAVA_INT, HwsNcclOperation.IS_FACTOR_ON_DEVICE_OFFSET, 1);
            assertEquals(ncclInvalidArgument, run(guest, factor));
        }
    }

    @Test
    void shouldEndSessionsThatSendWhatTheGuestsLibraryDoesNot() throws IOException {
        long[][] wrong = {{HwsNcclOperation.KIND_OFFSET, 0}, {HwsNcclOperation.KIND_OFFSET, 8},
            {HwsNcclOperation.DATATYPE_OFFSET, 12}, {HwsNcclOperation.PEER_OFFSET, 2},
            {HwsNcclOperation.PEER_OFFSET, -1}, {HwsNcclOperation.REDUCTION_OFFSET, 6}};
        for (long[] one : wrong) {
            try (Rig rig = Rig.withGuest(Carrier.TCP)) {
                Guest guest = rig.guest();
                long data = guest.allocate(BYTES);
                MemorySegment operation =
                    operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, make(guest, 2, 0), data, data);
                operation.set(ValueLayout.JAVA_INT, one[0], (int) one[1]);
                send(guest, operation, Guest.REPLY | Guest.CREDITED);
                assertTrue(guest.reasonOfLoss().contains("an operation must be one of nccl.h"));
            }
        }
    }

    @Test
    void shouldEndSessionsThatHaveNoRankAmongTheirRanks() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            sendMake(guest, member(guest.newId(HandleKind.NCCL), guest.context(), 2, 2));
            assertTrue(guest.reasonOfLoss().contains("a member must have a rank among its ranks"));
        }
    }

    @Test
    void shouldBoundCommunicators() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 1L << 30)) {
            Guest guest = rig.guest();
            for (int i = 0; i < NcclCalls.MAX_COMMUNICATORS; i++) {
                make(guest, 1, 0);
            }
            long one = guest.newId(HandleKind.NCCL);
            assertEquals(ncclSystemError, guest.replyTo(sendMake(guest, member(one, guest.context(), 1, 0))).status());
        }
    }

    @Test
    void shouldCountCommunicatorsOnTheQuota() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 3 << 20)) {
            Guest guest = rig.guest();
            long first = make(guest, 1, 0);
            make(guest, 1, 0);
            make(guest, 1, 0);
            long one = guest.newId(HandleKind.NCCL);
            assertEquals(ncclUnhandledCudaError,
                guest.replyTo(sendMake(guest, member(one, guest.context(), 1, 0))).status());
            assertEquals(0, guest.call(NcclOpcodes.hwsNcclEnd, first, 0).status());
            make(guest, 1, 0);
            assertEquals(3, HeapMath.ncclOf(rig.gpu()).communicators.get());
        }
    }

    /** As a program that calls cudaDeviceReset() first. */
    @Test
    void shouldAcceptTheEndOfCommunicatorsWhoseContextHasEnded() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            long comm = make(guest, 1, 0);
            guest.useContext(first);
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            assertEquals(0, guest.call(NcclOpcodes.hwsNcclEnd, comm, 0).status());
        }
    }

    @Test
    void shouldKeepErrorsOfOperationsThatNobodyAwaits() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(BYTES);
            long comm = make(guest, 2, 0);
            HeapNccl nccl = HeapMath.ncclOf(rig.gpu());
            nccl.status = ncclRemoteError;
            assertEquals(ncclRemoteError, guest.call(NcclOpcodes.hwsNcclAsyncError, comm).i32(0));
            assertEquals(ncclRemoteError, run(guest, operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, data, data)));
            List<NcclOperation> group = nccl.groups.remove();
            assertEquals(COUNT, group.getFirst().count());
        }
    }

    @Test
    void shouldAbortCommunicatorsWhenTheSessionEnds() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            guest.allocate(BYTES);
            assertNull(HeapMath.ncclOf(rig.gpu()));
            make(guest, 2, 0);
            HeapNccl nccl = HeapMath.ncclOf(rig.gpu());
            rig.leave();
            rig.join();
            assertEquals("", nccl.leftAtClose());
        }
    }

    /** An executable graph with an all-reduce. */
    private static long captured(Guest guest, long comm, long data) throws IOException {
        long graph = guest.newId(HandleKind.GRAPH);
        MemorySegment operation = operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, data, data);
        Guest.Received reply = GraphCapturesTest.capture(guest, graph, NcclOpcodes.hwsNcclRun,
            out -> write(out, operation));
        assertEquals(List.of(0, 0, 1), List.of(reply.status(), reply.i32(0), reply.i32(4)));
        long exec = guest.newId(HandleKind.GRAPH_EXEC);
        assertEquals(0, GraphCapturesTest.instantiate(guest, exec, GraphCapturesTest.around(guest, graph)));
        return exec;
    }

    @Test
    void shouldCheckWhatBecomesANodeAndEndGraphsBeforeCommunicators() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long data = guest.allocate(BYTES);
            long comm = make(guest, 2, 0);
            captured(guest, comm, data);
            MemorySegment wrong = operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, comm, data, data + Float.BYTES);
            Guest.Received reply = GraphCapturesTest.capture(guest, guest.newId(HandleKind.GRAPH),
                NcclOpcodes.hwsNcclRun, out -> write(out, wrong));
            assertEquals(List.of(0, ncclInvalidArgument, 0), List.of(reply.status(), reply.i32(0), reply.i32(4)));
            HeapNccl nccl = HeapMath.ncclOf(rig.gpu());
            rig.leave();
            rig.join();
            assertEquals("", nccl.leftAtClose());
            assertEquals("", rig.gpu().leftAtClose());
        }
    }

    /** The other rank is another thread of the guest, whose call comes later. */
    @Test
    void shouldPostponeWaitsForTheDeviceBehindAGraphThatAwaitsTheGuest() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            rig.gpu().blockLikeNvidia(1024);
            Guest guest = rig.guest();
            long stream = guest.createStream();
            long data = guest.allocate(BYTES);
            long module = guest.newId(HandleKind.MODULE);
            byte[] image = "image fill".getBytes(StandardCharsets.US_ASCII);
            long comm = make(guest, 2, 0);
            make(guest, 2, 1);
            long exec = captured(guest, comm, data);
            HeapNccl nccl = HeapMath.ncclOf(rig.gpu());
            nccl.inGraphs = new CountDownLatch(1);
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, exec, stream);
            long load = guest.as(2).send(Guest.IMAGE_LOAD, Guest.REPLY, out -> Guest.image(out, module, 0, image));
            assertEquals(0, guest.as(1).call(NcclOpcodes.hwsNcclAsyncError, comm).status());
            nccl.inGraphs.countDown();
            assertEquals(0, guest.replyTo(load).status());
            rig.leave();
        }
    }

    /** Ranks on several GPUs would wait for each other's turns. */
    @Test
    void shouldLaunchGraphsThatAwaitOtherRanksWithoutATurn() throws IOException {
        int descriptor = TurnPage.create();
        EventFd bell = EventFd.create();
        TurnPage page = TurnPage.map(descriptor);
        try (Rig rig = Rig.withTurns(Carrier.TCP, descriptor, bell.fd())) {
            Guest guest = rig.guest();
            long data = guest.allocate(BYTES);
            long among = captured(guest, make(guest, 2, 0), data);
            long alone = captured(guest, make(guest, 1, 0), data);
            page.setPermit(TurnPage.WAIT);
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, among, 0);
            assertEquals(0, guest.synchronize(0));
            guest.send(CudaOpcodes.cuGraphLaunch, Guest.CREDITED, alone, 0);
            long waits = guest.send(Guest.STREAM_SYNCHRONIZE, Guest.REPLY, 0);
            long end = System.nanoTime() + 120_000_000_000L;
            while (page.state() != TurnPage.WANTS) {
                assertTrue(System.nanoTime() < end, "a communicator of one rank waits for nobody");
                bell.poll(1_000_000_000L);
            }
            page.setPermit(TurnPage.TURN);
            assertEquals(0, guest.replyTo(waits).status());
            rig.leave();
        } finally {
            page.close();
            bell.close();
            Descriptors.close(descriptor);
        }
    }

    @Test
    void shouldReadTheSettingsOfAMember() {
        MemorySegment content = member(1, 2, 4, 3);
        content.set(ValueLayout.JAVA_INT, HwsNcclMember.MAX_CTAS_OFFSET, 8);
        NcclMember member = NcclMember.of(content, 5, 0);
        assertEquals(8, member.settings().maxCtas());
        assertEquals(2 * NcclMember.ID_BYTES, member.id().length());
        assertTrue(member.isValid() && !member.isAbsent());
    }
}
