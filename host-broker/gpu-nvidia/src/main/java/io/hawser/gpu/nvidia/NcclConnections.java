package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInProgress;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclRemoteError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;

import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaForeign;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.nccl.NcclNative;
import io.hawser.cuda.generated.nccl.ncclDataType_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Connects each rank of new communicators with each other one, by a byte in both directions. All ranks do this when
 * their communicator has been made. One thread, not the session's, because it waits for the ranks.
 */
final class NcclConnections implements AutoCloseable {
    private static final CudaForeign DRIVER = new CudaForeign(); // the session's own counts what it allocates
    private static final int NON_BLOCKING = 1; // CU_STREAM_NON_BLOCKING
    private static final int BYTE = ncclDataType_t.ncclUint8;
    private static final long PAUSE_NS = 200_000;

    private final NcclNative library;
    private final Arena arena = Arena.ofConfined();
    private final List<Member> members = new ArrayList<>();

    /** A rank of this process, with a stream and two bytes for each rank in its context. */
    private record Member(long comm, long context, long stream, long memory, int ranks, int rank) {
    }

    NcclConnections(NcclNative library) {
        this.library = library;
    }

    /** Adds a rank; returns a result of NCCL. */
    int add(long comm, long context, int ranks, int rank) {
        if (ranks == 1) {
            return ncclSuccess;
        }
        MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
        if (CudaNative.cuCtxSetCurrent(context) != 0 || CudaNative.cuStreamCreate(out, NON_BLOCKING) != 0) {
            return ncclUnhandledCudaError;
        }
        long stream = out.get(ValueLayout.JAVA_LONG, 0);
        int result = DRIVER.cuMemAlloc_v2(out, 2L * ranks);
        members.add(new Member(comm, context, stream, result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0, ranks,
            rank));
        return result == 0 ? ncclSuccess : ncclUnhandledCudaError;
    }

    /** Connects the added ranks, and waits for all others of their communicators; returns a result of NCCL. */
    int connect() {
        int status = members.isEmpty() ? ncclSuccess : library.ncclGroupStart();
        if (status != ncclSuccess || members.isEmpty()) {
            return status;
        }
        for (Member member : members) {
            status = status != ncclSuccess ? status : exchange(member);
        }
        int ended = library.ncclGroupEnd();
        status = status != ncclSuccess ? status : ended;
        for (Member member : members) {
            status = status != ncclSuccess ? status : await(member);
        }
        return status;
    }

    private int exchange(Member member) {
        int status = CudaNative.cuCtxSetCurrent(member.context()) == 0 ? ncclSuccess : ncclUnhandledCudaError;
        for (int peer = 0; peer < member.ranks() && status == ncclSuccess; peer++) {
            if (peer != member.rank()) {
                MemorySegment sent = MemorySegment.ofAddress(member.memory() + peer);
                MemorySegment received = MemorySegment.ofAddress(member.memory() + member.ranks() + peer);
                status = library.ncclSend(sent, 1, BYTE, peer, member.comm(), member.stream());
                status = status != ncclSuccess ? status
                    : library.ncclRecv(received, 1, BYTE, peer, member.comm(), member.stream());
            }
        }
        return status;
    }

    /** Waits for the bytes, unless a rank dies first. */
    private int await(Member member) {
        MemorySegment error = arena.allocate(ValueLayout.JAVA_INT);
        if (CudaNative.cuCtxSetCurrent(member.context()) != 0) {
            return ncclUnhandledCudaError;
        }
        while (true) {
            int result = CudaNative.cuStreamQuery(member.stream());
            if (result != CUresult.CUDA_ERROR_NOT_READY) {
                return result == 0 ? ncclSuccess : ncclUnhandledCudaError;
            }
            int status = library.ncclCommGetAsyncError(member.comm(), error);
            int found = status != ncclSuccess ? status : error.get(ValueLayout.JAVA_INT, 0);
            if (found != ncclSuccess && found != ncclInProgress) {
                return found;
            }
            LockSupport.parkNanos(PAUSE_NS);
            if (Thread.interrupted()) {
                return ncclRemoteError;
            }
        }
    }

    /** Gives the streams and the memory back. After an error, the communicators must have ended before. */
    @Override
    public void close() {
        for (Member member : members) {
            if (CudaNative.cuCtxSetCurrent(member.context()) == 0) {
                CudaNative.cuStreamDestroy_v2(member.stream());
                DRIVER.cuMemFree_v2(member.memory());
            }
        }
        arena.close();
    }
}
