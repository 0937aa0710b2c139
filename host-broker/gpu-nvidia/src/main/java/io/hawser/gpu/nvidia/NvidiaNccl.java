package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSystemError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.nccl.HwsNcclReduction;
import io.hawser.cuda.generated.nccl.NcclNative;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;

/**
 * NVIDIA's NCCL. Its functions may wait for other ranks before their work is in a stream. So they run on other threads,
 * with a stream of the communicator ({@link NcclCommunicator}). The guest's stream waits for that stream in the guest's
 * order, and the session's thread does not wait.
 */
final class NvidiaNccl implements NcclBackend {
    /** An assumption: the library documents no number for the buffers of a communicator. */
    private static final long COMMUNICATOR_BYTES = 256L << 20;
    private static final String NVML = "libnvidia-ml.so.1";
    private static final int NVML_MISSING = 13; // NVML_ERROR_FUNCTION_NOT_FOUND
    private static final System.Logger LOG = System.getLogger(NvidiaNccl.class.getName());

    private static final String LAST_ERROR = "ncclGetLastError";
    private static final long MAX_TEXT_BYTES = 1024; // NCCL keeps a line of so many characters

    private final NcclNative library;
    private final MethodHandle lastError; // null in old libraries
    private final GpuBackend gpu;
    private final Map<Long, NcclCommunicator> communicators = new ConcurrentHashMap<>(); // by our handle
    private final AtomicLong lastHandle = new AtomicLong();

    NvidiaNccl(NativeLibrary library, GpuBackend gpu) {
        this.library = new NcclNative(library);
        lastError = library.has(LAST_ERROR) ? library.function(LAST_ERROR, ValueLayout.ADDRESS, ValueLayout.ADDRESS)
            : null;
        this.gpu = gpu;
    }

    /**
     * Opens NVML for the rest of the process. NCCL reads the links of the GPUs by it, and finds the loaded library by
     * its name. In the jail nothing can be opened that NVML needs. Without NVML the calls of NCCL fail later.
     */
    static void openNvml() {
        if (!NativeLibrary.isPresent(NVML)) {
            LOG.log(Level.WARNING, "NCCL cannot communicate without {0}", NVML);
            return;
        }
        NativeLibrary nvml = NativeLibrary.open(NVML);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment device = arena.allocate(ValueLayout.ADDRESS);
            int status = (int) nvml.find("nvmlInit_v2", NVML_MISSING).invokeExact();
            status = status != 0 ? status : (int) nvml.find("nvmlDeviceGetCount_v2", NVML_MISSING,
                ValueLayout.ADDRESS).invokeExact(count);
            MethodHandle handle = nvml.find("nvmlDeviceGetHandleByIndex_v2", NVML_MISSING, ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS);
            for (int i = 0; status == 0 && i < count.get(ValueLayout.JAVA_INT, 0); i++) {
                status = (int) handle.invokeExact(i, device); // opens the device's file
            }
            if (status != 0) {
                LOG.log(Level.WARNING, "NCCL cannot read the links of the GPUs: nvmlReturn={0}", status);
            }
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public int version(MemorySegment value) {
        return library.ncclGetVersion(value);
    }

    @Override
    public int uniqueId(MemorySegment id) {
        int status = library.ncclGetUniqueId(id);
        if (status != ncclSuccess) {
            LOG.log(Level.WARNING, "NCCL: no id can be made: ncclResult={0}: {1} (a vGPU with communication=host has "
                + "the network that NCCL needs)", status, reason());
        }
        return status;
    }

    /** NCCL's text about its last failure in this process. */
    private String reason() {
        if (lastError == null) {
            return "";
        }
        try {
            MemorySegment text = (MemorySegment) lastError.invokeExact(MemorySegment.NULL);
            return text.address() == 0 ? "" : text.reinterpret(MAX_TEXT_BYTES).getString(0).strip();
        } catch (IndexOutOfBoundsException e) {
            return "its reason is longer than a line";
        } catch (Throwable e) {
            throw NativeLibrary.unexpected(e);
        }
    }

    @Override
    public long communicatorBytes() {
        return COMMUNICATOR_BYTES;
    }

    @Override
    public boolean mayWait() {
        return true;
    }

    @Override
    public int make(List<NcclMember> members, Made[] made) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment comms = arena.allocate(ValueLayout.JAVA_LONG, members.size());
            MemorySegment local = arena.allocate(NcclMember.ID_BYTES, Long.BYTES);
            boolean isLocal = members.stream().anyMatch(member -> member.parent() == 0 && member.id().isEmpty());
            int status = isLocal ? uniqueId(local) : ncclSuccess;
            status = status != ncclSuccess ? status : library.ncclGroupStart();
            if (status != ncclSuccess) {
                return status;
            }
            for (int i = 0; i < members.size() && status == ncclSuccess; i++) {
                status = begin(members.get(i), comms.asSlice(i * (long) Long.BYTES, Long.BYTES), local, arena);
            }
            int ended = library.ncclGroupEnd(); // waits for all ranks
            status = status != ncclSuccess ? status : ended;
            for (int i = 0; i < members.size() && status == ncclSuccess; i++) {
                made[i] = members.get(i).isAbsent() ? Made.ABSENT
                    : keep(members.get(i), comms.getAtIndex(ValueLayout.JAVA_LONG, i), arena);
                status = made[i] == null ? ncclUnhandledCudaError : ncclSuccess;
            }
            if (status != ncclSuccess) {
                LOG.log(Level.WARNING, "NCCL: a communicator cannot be made: ncclResult={0}: {1}", status, reason());
                for (int i = 0; i < members.size(); i++) {
                    abort(comms.getAtIndex(ValueLayout.JAVA_LONG, i), made[i]);
                }
            }
            return status;
        }
    }

    private void abort(long comm, Made made) {
        if (made != null && made.comm() != 0) {
            end(made.comm(), true);
        } else if (comm != 0) {
            library.ncclCommAbort(comm);
        }
    }

    private int begin(NcclMember member, MemorySegment comm, MemorySegment local, Arena arena) {
        if (CudaNative.cuCtxSetCurrent(member.context()) != 0) {
            return ncclUnhandledCudaError;
        }
        MemorySegment config = NcclArguments.of(member.settings(), library, arena);
        if (member.parent() != 0) {
            NcclCommunicator parent = communicators.get(member.parent());
            return parent == null ? ncclInvalidArgument
                : library.ncclCommSplit(parent.comm(), member.color(), member.key(), comm, config);
        }
        MemorySegment id = member.id().isEmpty() ? local
            : arena.allocateFrom(ValueLayout.JAVA_BYTE, HexFormat.of().parseHex(member.id()));
        return library.ncclCommInitRankScalable(comm, member.ranks(), member.rank(), 1, id, config);
    }

    /** Null when the stream of a communicator cannot be made. */
    private Made keep(NcclMember member, long comm, Arena arena) {
        MemorySegment ranks = arena.allocate(ValueLayout.JAVA_INT);
        MemorySegment rank = arena.allocate(ValueLayout.JAVA_INT);
        if (library.ncclCommCount(comm, ranks) != ncclSuccess || library.ncclCommUserRank(comm, rank) != ncclSuccess
            || CudaNative.cuCtxSetCurrent(member.context()) != 0) {
            return null;
        }
        NcclCommunicator communicator = NcclCommunicator.open(comm, member.context());
        if (communicator == null) {
            return null;
        }
        long handle = lastHandle.incrementAndGet();
        communicators.put(handle, communicator);
        return new Made(handle, ranks.get(ValueLayout.JAVA_INT, 0), rank.get(ValueLayout.JAVA_INT, 0));
    }

    @Override
    public void run(List<NcclOperation> operations, Executor threads, IntConsumer issued) {
        Map<Long, NcclCommunicator> used = new LinkedHashMap<>();
        for (NcclOperation operation : operations) {
            NcclCommunicator communicator = communicators.get(operation.comm());
            if (communicator == null) {
                issued.accept(ncclInvalidArgument);
                return;
            }
            used.put(operation.comm(), communicator);
        }
        int status = ncclSuccess;
        for (Map.Entry<Long, NcclCommunicator> one : used.entrySet()) {
            List<Long> streams = operations.stream().filter(operation -> operation.comm() == one.getKey())
                .map(NcclOperation::stream).distinct().toList();
            int result = one.getValue().hold(streams, gpu);
            status = status == ncclSuccess ? result : status;
        }
        // The session's thread expects the context of the last operation.
        int back = gpu.setCurrent(used.get(operations.getLast().comm()).context());
        int held = status != ncclSuccess || back == 0 ? status : ncclUnhandledCudaError;
        List<NcclCommunicator> all = List.copyOf(used.values());
        CompletableFuture<Void> before = CompletableFuture.allOf(all.stream().map(NcclCommunicator::last)
            .toArray(CompletableFuture<?>[]::new));
        CompletableFuture<Void> step = new CompletableFuture<>();
        all.forEach(communicator -> communicator.setLast(step));
        before.whenComplete((nothing, failure) -> {
            try {
                threads.execute(() -> {
                    int result = held != ncclSuccess ? held : issue(operations, used);
                    all.forEach(communicator -> communicator.release(result));
                    step.complete(null);
                    issued.accept(result);
                });
            } catch (RejectedExecutionException e) { // the session ends, or its guest waits in too many threads
                all.forEach(communicator -> communicator.giveUp(ncclSystemError));
                step.complete(null);
                issued.accept(ncclSystemError);
            }
        });
    }

    /** Puts the operations into the streams of their communicators; may wait for other ranks. */
    private int issue(List<NcclOperation> operations, Map<Long, NcclCommunicator> used) {
        try (Arena arena = Arena.ofConfined()) {
            List<long[]> factors = new ArrayList<>(); // reductions and their communicators
            int status = ncclSuccess;
            for (NcclCommunicator communicator : used.values()) {
                status = status != ncclSuccess ? status : communicator.enter();
                status = status != ncclSuccess ? status : communicator.awaitGuest();
            }
            status = status != ncclSuccess ? status : library.ncclGroupStart();
            if (status != ncclSuccess) {
                return status;
            }
            for (int i = 0; i < operations.size() && status == ncclSuccess; i++) {
                NcclOperation operation = operations.get(i);
                NcclCommunicator communicator = used.get(operation.comm());
                status = communicator.enter();
                status = status != ncclSuccess ? status : issue(operation, communicator, factors, arena);
            }
            int ended = library.ncclGroupEnd();
            factors.forEach(factor -> library.ncclRedOpDestroy((int) factor[0], factor[1]));
            return status != ncclSuccess ? status : ended;
        }
    }

    private int issue(NcclOperation operation, NcclCommunicator communicator, List<long[]> factors, Arena arena) {
        long comm = communicator.comm();
        int op = operation.reduction();
        if (op == HwsNcclReduction.HWS_NCCL_PRE_MUL_SUM) {
            MemorySegment made = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment factor = operation.isFactorOnDevice() ? MemorySegment.ofAddress(operation.factor())
                : arena.allocateFrom(ValueLayout.JAVA_LONG, operation.factor());
            int status = library.ncclRedOpCreatePreMulSum(made, factor, operation.datatype(),
                operation.isFactorOnDevice() ? 0 : 1, comm);
            if (status != ncclSuccess) {
                return status;
            }
            op = made.get(ValueLayout.JAVA_INT, 0);
            factors.add(new long[] {op, comm});
        }
        return NcclArguments.call(library, operation, op, comm, communicator.stream());
    }

    @Override
    public int finish(long comm) {
        NcclCommunicator communicator = communicators.get(comm);
        if (communicator == null) {
            return ncclInvalidArgument;
        }
        communicator.last().join();
        int status = communicator.enter();
        return status != ncclSuccess ? status : library.ncclCommFinalize(communicator.comm());
    }

    @Override
    public int end(long comm, boolean isAbort) {
        NcclCommunicator communicator = communicators.remove(comm);
        if (communicator == null) {
            return ncclInvalidArgument;
        }
        if (!isAbort) {
            communicator.last().join();
        }
        int status = communicator.enter();
        status = status != ncclSuccess ? status
            : isAbort ? library.ncclCommAbort(communicator.comm()) : library.ncclCommDestroy(communicator.comm());
        communicator.last().join(); // an abort ends the call that waits for other ranks
        communicator.close();
        return status;
    }

    @Override
    public int asyncError(long comm) {
        NcclCommunicator communicator = communicators.get(comm);
        if (communicator == null || communicator.error() != ncclSuccess) {
            return communicator == null ? ncclInvalidArgument : communicator.error();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment error = arena.allocate(ValueLayout.JAVA_INT);
            int status = library.ncclCommGetAsyncError(communicator.comm(), error);
            return status != ncclSuccess ? status : error.get(ValueLayout.JAVA_INT, 0);
        }
    }

    @Override
    public void close() {
        communicators.keySet().forEach(comm -> end(comm, true));
    }
}
