package io.hawser.gpu.software.nccl;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidUsage;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclRemoteError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSystemError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * NCCL on the software GPU. An operation is a host function of its stream, which waits for the other ranks. Nothing
 * else waits for them but {@link #make}.
 */
public final class SoftwareNccl implements NcclBackend {
    private static final System.Logger LOG = System.getLogger(SoftwareNccl.class.getName());
    private static final int VERSION = 22_900; // of the interface: NCCL 2.29.0

    private final GpuBackend gpu;
    private final ExecutorService threads = Executors.newCachedThreadPool(
        Thread.ofPlatform().daemon().name("nccl-gpu-", 0).factory());
    private final Bootstrap bootstrap;
    private final Map<Long, Rank> ranks = new ConcurrentHashMap<>(); // by handle
    private final AtomicLong lastHandle = new AtomicLong();
    private volatile boolean isClosed;

    /**
     * @param gpu runs the operations.
     * @param allowsNetwork whether ranks may be in other workers of the vGPU.
     */
    public SoftwareNccl(GpuBackend gpu, boolean allowsNetwork) {
        this.gpu = gpu;
        bootstrap = new Bootstrap(allowsNetwork, threads);
    }

    /** Loads the JVM's code for sockets. Without a network of the vGPU, the worker then has no other ranks. */
    public static void loadAhead() {
        try {
            Bootstrap.rehearse();
        } catch (IOException e) {
            LOG.log(Level.WARNING, "NCCL: loopback cannot be used: {0}", e.getMessage());
        }
    }

    @Override
    public int version(MemorySegment value) {
        value.set(ValueLayout.JAVA_INT, 0, VERSION);
        return ncclSuccess;
    }

    @Override
    public int uniqueId(MemorySegment id) {
        try {
            id.copyFrom(MemorySegment.ofArray(UniqueId.random(bootstrap.listen()).bytes()));
            return ncclSuccess;
        } catch (IOException e) {
            LOG.log(Level.WARNING, "NCCL: no id can be made: {0}", e.getMessage());
            return ncclSystemError;
        }
    }

    @Override
    public long communicatorBytes() {
        return 0;
    }

    /** Each member joins on a thread of its own, because each waits for the others. */
    @Override
    public int make(List<NcclMember> members, Made[] made) {
        UniqueId local = UniqueId.random(0);
        List<CompletableFuture<Integer>> joining = new ArrayList<>();
        for (int i = 0; i < members.size(); i++) {
            int at = i;
            joining.add(CompletableFuture.supplyAsync(() -> {
                try {
                    made[at] = make(members.get(at), local);
                    return made[at] == null ? ncclInvalidArgument : ncclSuccess;
                } catch (IOException e) {
                    LOG.log(Level.WARNING, "NCCL: a rank cannot join its communicator: {0}", e.getMessage());
                    return e instanceof Bootstrap.RefusedException ? ncclSystemError : ncclRemoteError;
                }
            }, threads));
        }
        int status = ncclSuccess;
        for (CompletableFuture<Integer> one : joining) {
            int result = one.join();
            status = status == ncclSuccess ? result : status;
        }
        if (status != ncclSuccess) {
            for (Made one : made) {
                if (one != null && one.comm() != 0) {
                    end(one.comm(), true);
                }
            }
        }
        return status;
    }

    /** Null for an argument that is not valid. */
    private Made make(NcclMember member, UniqueId local) throws IOException {
        UniqueId id = member.id().isEmpty() ? local : UniqueId.of(HexFormat.of().parseHex(member.id()));
        int count = member.ranks();
        int number = member.rank();
        if (member.parent() != 0) {
            Rank parent = ranks.get(member.parent());
            if (parent == null) {
                return null;
            }
            Split split = split(parent, member);
            if (split == null) {
                return Made.ABSENT;
            }
            id = split.id();
            count = split.ranks();
            number = split.number();
        }
        if (id == null) {
            return null;
        }
        Rank rank = bootstrap.join(id, count, number);
        long handle = lastHandle.incrementAndGet();
        ranks.put(handle, rank);
        if (isClosed) {
            rank.end();
        }
        return new Made(handle, count, number);
    }

    private Split split(Rank parent, NcclMember member) throws IOException {
        UniqueId own = UniqueId.random(parent.isLocal() ? 0 : bootstrap.listen());
        Split[] found = new Split[1];
        parent.enqueue(() -> found[0] = Split.of(parent, member, own, threads)).run();
        if (parent.ended().isDone()) {
            throw new IOException("the communicator has failed");
        }
        return found[0];
    }

    @Override
    public int run(List<NcclOperation> operations) {
        if (operations.stream().anyMatch(operation -> operation.isReduction()
            && !Reduction.isSupported(operation.datatype()))) {
            LOG.log(Level.WARNING, "NCCL: the software GPU does not reduce numbers of 8 bits with a fraction");
            return ncclInvalidUsage;
        }
        Map<Long, List<NcclOperation>> groups = new LinkedHashMap<>();
        operations.forEach(operation -> groups.computeIfAbsent(operation.comm(), key -> new ArrayList<>())
            .add(operation));
        int status = ncclSuccess;
        for (Map.Entry<Long, List<NcclOperation>> group : groups.entrySet()) {
            Rank rank = ranks.get(group.getKey());
            int result = rank == null ? ncclInvalidArgument
                : rank.error() != ncclSuccess ? rank.error() : issue(rank, group.getValue());
            status = status == ncclSuccess ? result : status;
        }
        return status;
    }

    /** Issues the operations of one rank: the first stream runs them, and the others wait for it. */
    private int issue(Rank rank, List<NcclOperation> operations) {
        Set<Long> streams = new LinkedHashSet<>();
        operations.forEach(operation -> streams.add(operation.stream()));
        if (streams.size() == 1) { // which may capture
            return result(rank, gpu.hostFunctionOfEachIssue(operations.getFirst().stream(),
                () -> rank.enqueue(() -> new Collectives(rank, threads).run(operations))));
        }
        Collectives collectives = new Collectives(rank, threads);
        CountDownLatch arrivals = new CountDownLatch(streams.size());
        CompletableFuture<Void> arrived = new CompletableFuture<>();
        CompletableFuture<Void> done = new CompletableFuture<>();
        Runnable step = rank.enqueue(() -> {
            CompletableFuture.anyOf(arrived, rank.ended()).join();
            collectives.run(operations);
        });
        boolean isFirst = true;
        for (long stream : streams) {
            boolean runs = isFirst;
            isFirst = false;
            int result = result(rank, gpu.hostFunction(stream, () -> {
                arrivals.countDown();
                if (arrivals.getCount() == 0) {
                    arrived.complete(null);
                }
                if (runs) {
                    step.run();
                    done.complete(null);
                } else {
                    CompletableFuture.anyOf(done, rank.ended()).join();
                }
            }));
            if (result != ncclSuccess) {
                return result;
            }
        }
        return ncclSuccess;
    }

    private static int result(Rank rank, int cuResult) {
        if (cuResult != 0) {
            rank.fail(ncclUnhandledCudaError, "a stream takes no work: CUresult=" + cuResult);
        }
        return cuResult == 0 ? ncclSuccess : ncclUnhandledCudaError;
    }

    /** Waits until the streams have run what was issued. */
    @Override
    public int finish(long comm) {
        Rank rank = ranks.get(comm);
        if (rank == null) {
            return ncclInvalidArgument;
        }
        CompletableFuture.anyOf(rank.steps(), rank.ended()).join();
        return rank.error();
    }

    @Override
    public int end(long comm, boolean isAbort) {
        Rank rank = ranks.get(comm);
        if (rank == null) {
            return ncclInvalidArgument;
        }
        if (!isAbort) {
            finish(comm);
        }
        ranks.remove(comm);
        rank.end();
        return ncclSuccess;
    }

    @Override
    public int asyncError(long comm) {
        Rank rank = ranks.get(comm);
        return rank == null ? ncclInvalidArgument : rank.error();
    }

    /** Whether at least two ranks have joined at this root, and others have not yet. */
    boolean awaitsRanks() {
        return bootstrap.awaitsRanks();
    }

    @Override
    public void close() {
        isClosed = true;
        bootstrap.close();
        ranks.values().forEach(Rank::end);
        threads.shutdown();
    }
}
