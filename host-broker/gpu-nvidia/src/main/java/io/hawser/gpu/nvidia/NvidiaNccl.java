package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
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
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * NVIDIA's NCCL. It connects ranks when they first exchange data, and then waits for the others, and may wait for the
 * device. The session's thread must do neither. So a new communicator connects all its ranks: for collective functions
 * NCCL does so itself ({@code NCCL_RUNTIME_CONNECT=0}), for the others {@link NcclConnections} does. After that, an
 * operation only puts a kernel into the guest's stream.
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
    private final Map<Long, Communicator> communicators = new ConcurrentHashMap<>(); // by our handle
    private final AtomicLong lastHandle = new AtomicLong();

    /** A communicator of the library in its context. */
    private record Communicator(long comm, long context) {
    }

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
    public int make(List<NcclMember> members, Made[] made) {
        try (Arena arena = Arena.ofConfined(); NcclConnections connections = new NcclConnections(library)) {
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
            status = status != ncclSuccess ? status : connect(made, connections);
            if (status != ncclSuccess) {
                LOG.log(Level.WARNING, "NCCL: a communicator cannot be made: ncclResult={0}: {1}", status, reason());
                for (int i = 0; i < members.size(); i++) {
                    abort(comms.getAtIndex(ValueLayout.JAVA_LONG, i), made[i]);
                }
            }
            return status;
        }
    }

    private int connect(Made[] made, NcclConnections connections) {
        int status = ncclSuccess;
        for (int i = 0; i < made.length && status == ncclSuccess; i++) {
            Communicator communicator = communicators.get(made[i].comm());
            status = communicator == null ? ncclSuccess // an absent member, or the session has ended
                : connections.add(communicator.comm(), communicator.context(), made[i].ranks(), made[i].rank());
        }
        return status != ncclSuccess ? status : connections.connect();
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
        MemorySegment config = NcclArguments.of(member.settings(), arena);
        if (member.parent() != 0) {
            Communicator parent = communicators.get(member.parent());
            return parent == null ? ncclInvalidArgument
                : library.ncclCommSplit(parent.comm(), member.color(), member.key(), comm, config);
        }
        MemorySegment id = member.id().isEmpty() ? local
            : arena.allocateFrom(ValueLayout.JAVA_BYTE, HexFormat.of().parseHex(member.id()));
        return library.ncclCommInitRankScalable(comm, member.ranks(), member.rank(), 1, id, config);
    }

    /** Null when the library does not know the new communicator. */
    private Made keep(NcclMember member, long comm, Arena arena) {
        MemorySegment ranks = arena.allocate(ValueLayout.JAVA_INT);
        MemorySegment rank = arena.allocate(ValueLayout.JAVA_INT);
        if (library.ncclCommCount(comm, ranks) != ncclSuccess || library.ncclCommUserRank(comm, rank) != ncclSuccess) {
            return null;
        }
        long handle = lastHandle.incrementAndGet();
        communicators.put(handle, new Communicator(comm, member.context()));
        return new Made(handle, ranks.get(ValueLayout.JAVA_INT, 0), rank.get(ValueLayout.JAVA_INT, 0));
    }

    @Override
    public int run(List<NcclOperation> operations) {
        List<Communicator> used = operations.stream().map(operation -> communicators.get(operation.comm())).toList();
        if (used.stream().anyMatch(Objects::isNull)) {
            return ncclInvalidArgument;
        }
        try (Arena arena = Arena.ofConfined()) {
            List<long[]> factors = new ArrayList<>(); // reductions and their communicators
            int status = library.ncclGroupStart();
            if (status != ncclSuccess) {
                return status;
            }
            for (int i = 0; i < operations.size() && status == ncclSuccess; i++) {
                status = gpu.setCurrent(used.get(i).context()) != 0 ? ncclUnhandledCudaError
                    : issue(operations.get(i), used.get(i), factors, arena);
            }
            int ended = library.ncclGroupEnd();
            factors.forEach(factor -> library.ncclRedOpDestroy((int) factor[0], factor[1]));
            status = status != ncclSuccess ? status : ended;
            // The session's thread expects the context of the last operation, also after an error before it.
            int back = gpu.setCurrent(used.getLast().context());
            return status != ncclSuccess || back == 0 ? status : ncclUnhandledCudaError;
        }
    }

    private int issue(NcclOperation operation, Communicator communicator, List<long[]> factors, Arena arena) {
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
        return NcclArguments.call(library, operation, op, comm, operation.stream());
    }

    @Override
    public int finish(long comm) {
        Communicator communicator = communicators.get(comm);
        int status = enter(communicator);
        return status != ncclSuccess ? status : library.ncclCommFinalize(communicator.comm());
    }

    /** Makes a communicator's context current in a thread that is not the session's; returns a result of NCCL. */
    private static int enter(Communicator communicator) {
        return communicator == null ? ncclInvalidArgument
            : CudaNative.cuCtxSetCurrent(communicator.context()) == 0 ? ncclSuccess : ncclUnhandledCudaError;
    }

    @Override
    public int end(long comm, boolean isAbort) {
        Communicator communicator = communicators.remove(comm);
        int status = enter(communicator);
        return status != ncclSuccess ? status
            : isAbort ? library.ncclCommAbort(communicator.comm()) : library.ncclCommDestroy(communicator.comm());
    }

    @Override
    public int asyncError(long comm) {
        Communicator communicator = communicators.get(comm);
        if (communicator == null) {
            return ncclInvalidArgument;
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
