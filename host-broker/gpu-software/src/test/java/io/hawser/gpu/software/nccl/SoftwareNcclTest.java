package io.hawser.gpu.software.nccl;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidUsage;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclRemoteError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSystemError;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.NcclBackend.Made;
import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.nccl.HwsNcclKind;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import io.hawser.cuda.generated.nccl.ncclRedOp_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks in several workers, each an NCCL of its own here, with a GPU that has streams alone. */
@Timeout(60)
class SoftwareNcclTest {
    private static final int COUNT = 100_000;
    private static final NcclMember.Settings NO_SETTINGS = new NcclMember.Settings(NcclMember.UNDEFINED,
        NcclMember.UNDEFINED, NcclMember.UNDEFINED, NcclMember.UNDEFINED);

    private final Arena arena = Arena.ofShared();
    private final List<Process> processes = new ArrayList<>();

    /** A worker: its NCCL and the ends of its streams' work. */
    private static final class Process {
        private final Map<Long, CompletableFuture<Void>> streams = new ConcurrentHashMap<>();
        private final List<Supplier<?>> captured = new ArrayList<>(); // functions of a graph's nodes
        private boolean isCapturing;
        private final SoftwareNccl nccl;
        private final Made[] made = new Made[1];

        Process(boolean allowsNetwork) {
            GpuBackend gpu = (GpuBackend) Proxy.newProxyInstance(GpuBackend.class.getClassLoader(),
                new Class<?>[] {GpuBackend.class}, (proxy, method, arguments) -> {
                    if (!method.getName().equals("hostFunctionOfEachIssue")) {
                        assertEquals("hostFunction", method.getName());
                        start((long) arguments[0], (Runnable) arguments[1]);
                    } else if (isCapturing) {
                        captured.add((Supplier<?>) arguments[1]);
                    } else {
                        start((long) arguments[0], (Runnable) ((Supplier<?>) arguments[1]).get());
                    }
                    return 0;
                });
            nccl = new SoftwareNccl(gpu, allowsNetwork);
        }

        void start(long stream, Runnable work) {
            streams.merge(stream, CompletableFuture.runAsync(work, task -> Thread.ofPlatform().daemon().start(task)),
                CompletableFuture::allOf);
        }

        void awaitStream(long stream) throws Exception {
            streams.get(stream).get(30, TimeUnit.SECONDS);
        }

        long comm() {
            return made[0].comm();
        }

        int run(NcclOperation... operations) {
            return nccl.run(List.of(operations));
        }
    }

    @AfterEach
    void close() {
        processes.forEach(process -> process.nccl.close());
        arena.close();
    }

    private Process process(boolean allowsNetwork) {
        processes.add(new Process(allowsNetwork));
        return processes.getLast();
    }

    private static NcclMember member(String id, int ranks, int rank) {
        return new NcclMember(1, 0, ranks, rank, 0, 0, NO_SETTINGS, id);
    }

    private String newId(Process root) {
        MemorySegment id = arena.allocate(NcclMember.ID_BYTES);
        assertEquals(ncclSuccess, root.nccl.uniqueId(id));
        return HexFormat.of().formatHex(id.toArray(ValueLayout.JAVA_BYTE));
    }

    /** Starts to make a rank of a communicator. */
    private static CompletableFuture<Integer> join(Process process, NcclMember member) {
        return CompletableFuture.supplyAsync(() -> process.nccl.make(List.of(member), process.made),
            task -> Thread.ofPlatform().daemon().start(task));
    }

    private void connect(int ranks) throws Exception {
        for (int rank = 0; rank < ranks; rank++) {
            process(true);
        }
        String id = newId(processes.getFirst());
        List<CompletableFuture<Integer>> joining = new ArrayList<>();
        for (int rank = ranks - 1; rank >= 0; rank--) {
            joining.add(join(processes.get(rank), member(id, ranks, rank)));
        }
        for (CompletableFuture<Integer> one : joining) {
            assertEquals(ncclSuccess, one.get(30, TimeUnit.SECONDS));
        }
    }

    private static NcclOperation operation(int kind, long comm, MemorySegment send, MemorySegment receive, int peer,
        long count) {
        return new NcclOperation(kind, ncclDataType_t.ncclInt32, ncclRedOp_t.ncclSum, peer, count, comm, 7,
            send.address(), receive.address(), 0, false);
    }

    private MemorySegment numbers(int value) {
        MemorySegment numbers = arena.allocate(ValueLayout.JAVA_INT, COUNT);
        for (int i = 0; i < COUNT; i++) {
            numbers.setAtIndex(ValueLayout.JAVA_INT, i, value + i);
        }
        return numbers;
    }

    @Test
    void shouldReduceAmongSeveralWorkers() throws Exception {
        connect(3);
        List<MemorySegment> results = new ArrayList<>();
        for (int rank = 0; rank < 3; rank++) {
            results.add(arena.allocate(ValueLayout.JAVA_INT, COUNT));
            assertEquals(ncclSuccess, processes.get(rank).run(operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE,
                processes.get(rank).comm(), numbers(rank), results.get(rank), 0, COUNT)));
        }
        for (int rank = 0; rank < 3; rank++) {
            processes.get(rank).awaitStream(7);
            for (int i = 0; i < COUNT; i++) {
                assertEquals(3 * i + 3, results.get(rank).getAtIndex(ValueLayout.JAVA_INT, i));
            }
            assertEquals(ncclSuccess, processes.get(rank).nccl.end(processes.get(rank).comm(), false));
        }
    }

    /** A graph and an operation beside it, issued in the same order by both ranks, but begun in another one. */
    @Test
    void shouldKeepTheOrderOfLaunchesAndOperations() throws Exception {
        connect(2);
        List<MemorySegment> results = new ArrayList<>();
        List<Runnable> nodes = new ArrayList<>();
        for (Process process : processes) {
            int rank = processes.indexOf(process);
            results.add(arena.allocate(ValueLayout.JAVA_INT, COUNT));
            process.isCapturing = true;
            assertEquals(ncclSuccess, process.run(operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, process.comm(),
                numbers(rank), results.get(rank), 0, COUNT)));
            process.isCapturing = false;
            for (int launch = 0; launch < 2; launch++) {
                nodes.add((Runnable) process.captured.getFirst().get());
            }
            assertEquals(ncclSuccess, process.run(operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, process.comm(),
                results.get(rank), results.get(rank), 0, COUNT)));
        }
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).start(8, nodes.get(2 * rank + 1));
        }
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).start(9, nodes.get(2 * rank));
        }
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).awaitStream(7);
            for (int i = 0; i < COUNT; i++) {
                assertEquals(2 * (2 * i + 1), results.get(rank).getAtIndex(ValueLayout.JAVA_INT, i));
            }
        }
    }

    @Test
    void shouldSplitIntoPartsThatWork() throws Exception {
        connect(3);
        List<CompletableFuture<Integer>> splitting = new ArrayList<>();
        for (Process process : processes) {
            splitting.add(join(process, new NcclMember(1, process.comm(), 0, 0,
                process == processes.get(1) ? NcclMember.NO_COLOR : 5, -processes.indexOf(process), NO_SETTINGS, "")));
        }
        for (CompletableFuture<Integer> one : splitting) {
            assertEquals(ncclSuccess, one.get(30, TimeUnit.SECONDS));
        }
        assertEquals(Made.ABSENT, processes.get(1).made[0]);
        assertEquals(1, processes.get(0).made[0].rank());
        assertEquals(0, processes.get(2).made[0].rank());
        MemorySegment into = arena.allocate(ValueLayout.JAVA_INT, COUNT);
        processes.get(0).run(operation(HwsNcclKind.HWS_NCCL_RECEIVE, processes.get(0).comm(), MemorySegment.NULL, into,
            0, COUNT));
        processes.get(2).run(operation(HwsNcclKind.HWS_NCCL_SEND, processes.get(2).comm(), numbers(9),
            MemorySegment.NULL, 1, COUNT));
        processes.get(0).awaitStream(7);
        assertEquals(9, into.getAtIndex(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldEndOperationsOfTheOthersWhenARankEnds() throws Exception {
        connect(3);
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).run(operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, processes.get(rank).comm(),
                numbers(rank), arena.allocate(ValueLayout.JAVA_INT, COUNT), 0, COUNT));
        }
        processes.get(2).nccl.close();
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).awaitStream(7);
            assertEquals(ncclRemoteError, processes.get(rank).nccl.asyncError(processes.get(rank).comm()));
            assertEquals(ncclRemoteError, processes.get(rank).run(operation(HwsNcclKind.HWS_NCCL_BROADCAST,
                processes.get(rank).comm(), numbers(0), numbers(0), 0, COUNT)));
        }
    }

    @Test
    void shouldEndTheJoiningOfTheOthersWhenARankEnds() throws Exception {
        Process root = process(true);
        Process other = process(true);
        String id = newId(root);
        CompletableFuture<Integer> first = join(root, member(id, 3, 0));
        CompletableFuture<Integer> second = join(other, member(id, 3, 1));
        while (!root.nccl.awaitsRanks()) {
            Thread.onSpinWait();
        }
        other.nccl.close();
        assertEquals(ncclRemoteError, second.get(30, TimeUnit.SECONDS));
        assertEquals(ncclRemoteError, first.get(30, TimeUnit.SECONDS));
    }

    @Test
    void shouldReportRanksThatDoNotDoTheSame() throws Exception {
        connect(2);
        for (int rank = 0; rank < 2; rank++) {
            processes.get(rank).run(operation(HwsNcclKind.HWS_NCCL_ALL_REDUCE, processes.get(rank).comm(),
                numbers(rank), arena.allocate(ValueLayout.JAVA_INT, COUNT), 0, COUNT - rank * 2));
        }
        processes.get(0).awaitStream(7);
        processes.get(1).awaitStream(7);
        List<Integer> errors = List.of(processes.get(0).nccl.asyncError(processes.get(0).comm()),
            processes.get(1).nccl.asyncError(processes.get(1).comm()));
        assertTrue(errors.contains(ncclInvalidUsage) && !errors.contains(ncclSuccess), errors::toString);
    }

    @Test
    void shouldNeedTheNetworkOfAVgpuForOtherWorkers() throws Exception {
        Process alone = process(false);
        assertEquals(ncclSystemError, alone.nccl.uniqueId(arena.allocate(NcclMember.ID_BYTES)));
        String id = newId(process(true));
        assertEquals(ncclSystemError, join(alone, member(id, 2, 1)).get(30, TimeUnit.SECONDS));
    }

    @Test
    void shouldRefuseBytesThatAreNoId() throws Exception {
        assertEquals(ncclInvalidArgument, join(process(true), member("ab".repeat(NcclMember.ID_BYTES), 2, 0)).get(30,
            TimeUnit.SECONDS));
    }

    @Test
    void shouldMakeAllRanksOfOneWorkerWithoutANetwork() {
        Process process = process(false);
        Made[] made = new Made[4];
        List<NcclMember> members = new ArrayList<>();
        for (int rank = 0; rank < 4; rank++) {
            members.add(member("", 4, rank));
        }
        assertEquals(ncclSuccess, process.nccl.make(members, made));
        MemorySegment all = arena.allocate(ValueLayout.JAVA_INT, 4 * COUNT);
        NcclOperation[] operations = new NcclOperation[4];
        for (int rank = 0; rank < 4; rank++) {
            operations[rank] = new NcclOperation(HwsNcclKind.HWS_NCCL_ALL_GATHER, ncclDataType_t.ncclInt32, 0, 0, COUNT,
                made[rank].comm(), rank, numbers(rank).address(), all.address(), 0, false);
        }
        assertEquals(ncclSuccess, process.run(operations));
        for (Made one : made) {
            assertEquals(ncclSuccess, process.nccl.finish(one.comm()));
        }
        for (int rank = 0; rank < 4; rank++) {
            assertEquals(rank + 1, all.getAtIndex(ValueLayout.JAVA_INT, (long) rank * COUNT + 1));
        }
    }
}
