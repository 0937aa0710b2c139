package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDispatcher;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublaslt.CublasLtOpcodes;
import io.hawser.cuda.generated.cufft.CufftOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CallDispatcher;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamTable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** The described functions of one session: the generated dispatcher and the hand-written calls. */
public final class Calls implements CallDispatcher {
    private static final int LIBRARY_SHIFT = 16;
    private static final int CUBLAS = CublasOpcodes.cublasCreate_v2 >>> LIBRARY_SHIFT;
    private static final int CUBLASLT = CublasLtOpcodes.cublasLtCreate >>> LIBRARY_SHIFT;
    private static final int CUFFT = CufftOpcodes.hwsFftMakePlan >>> LIBRARY_SHIFT;
    private static final int LIBRARY = CudaOpcodes.cuCtxSynchronize >>> LIBRARY_SHIFT;

    private final CudaDispatcher<Call> dispatcher;
    private final RegionCopies region;
    private final GuestObjects objects;
    private final CublasCalls cublas;
    private final CublasLtCalls cublasLt;
    private final CufftCalls cufft;

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param shared the guest's region; null over another carrier.
     */
    public Calls(Session session, SharedRegion shared) {
        LaunchCalls launches = new LaunchCalls(session);
        MemoryCalls memory = new MemoryCalls(session);
        StreamMemoryCalls streamMemory = new StreamMemoryCalls(session);
        region = new RegionCopies(session, shared);
        objects = session.objects();
        cublas = new CublasCalls(session);
        cublasLt = new CublasLtCalls(session);
        cufft = new CufftCalls(session);
        ArenaCalls arena = new ArenaCalls(session);
        SharedHandles handles = new SharedHandles(session);
        VmmCalls vmm = new VmmCalls(session, handles);
        MappedParts parts = new MappedParts();
        dispatcher = new CudaDispatcher<>(session.backend().driver(),
            new DeviceCalls(session),
            new PeerCalls(session),
            new ContextCalls(session),
            new ModuleCalls(session),
            new LinkCalls(session),
            launches,
            memory,
            arena,
            new HostMemoryCalls(session, shared, region),
            new PoolCalls(session, memory),
            new CopyCalls(session, region),
            new StreamCalls(session),
            new EventCalls(session),
            launches,
            new GraphCalls(session, shared),
            new ArrayCalls(session, region, parts),
            new TextureCalls(session),
            vmm,
            streamMemory,
            streamMemory,
            new IpcCalls(session, arena, handles),
            new GreenCalls(session),
            new SparseCalls(session, parts),
            new DecompressCalls(session));
    }

    /** Reads the files that the calls need, before the process enters its jail. */
    public static void loadAhead() {
        MathProviders.loadAhead();
    }

    /**
     * Selects how per-thread default streams are created.
     *
     * @param backend the GPU.
     * @return creates a stream that synchronises with the legacy default stream, as CUDA documents.
     */
    public static StreamTable.Maker perThreadStreams(GpuBackend backend) {
        return out -> backend.driver().cuStreamCreateWithPriority(out, 0, 0);
    }

    @Override
    public boolean isKnown(int opcode) {
        // The dispatcher rejects numbers without a description.
        return isDriver(opcode) || isMath(opcode);
    }

    private static boolean isDriver(int opcode) {
        return opcode >>> LIBRARY_SHIFT == LIBRARY;
    }

    private static boolean isCublas(int opcode) {
        return opcode >>> LIBRARY_SHIFT == CUBLAS;
    }

    private static boolean isCublasLt(int opcode) {
        return opcode >>> LIBRARY_SHIFT == CUBLASLT;
    }

    private static boolean isCufft(int opcode) {
        return opcode >>> LIBRARY_SHIFT == CUFFT;
    }

    /** Whether a call is one of a math library. */
    private static boolean isMath(int opcode) {
        return isCublas(opcode) || isCublasLt(opcode) || isCufft(opcode);
    }

    /** Whether a call puts a math library's work into a stream. */
    private static boolean isMathWork(int opcode) {
        return CublasOpcodes.isCredited(opcode) || CublasLtOpcodes.isCredited(opcode)
            || CufftOpcodes.isCredited(opcode);
    }

    @Override
    public boolean mayWaitForDevice(int opcode) {
        return CudaOpcodes.mayWaitForDevice(opcode) || CublasOpcodes.mayWaitForDevice(opcode)
            || CublasLtOpcodes.mayWaitForDevice(opcode) || CufftOpcodes.mayWaitForDevice(opcode);
    }

    @Override
    public boolean endsHostFunction(int opcode) {
        return CudaOpcodes.endsHostFunction(opcode);
    }

    @Override
    public boolean issuesWork(int opcode) {
        return CudaOpcodes.issuesWork(opcode) || isMathWork(opcode);
    }

    @Override
    public boolean opensGate(int opcode) {
        return CudaOpcodes.opensGate(opcode);
    }

    @Override
    public boolean asks(int opcode) {
        return asksStream(opcode) || opcode == CudaOpcodes.cuEventQuery || opcode == CudaOpcodes.cuEventSynchronize;
    }

    private static boolean asksStream(int opcode) {
        return opcode == CudaOpcodes.cuStreamQuery || opcode == CudaOpcodes.cuStreamSynchronize;
    }

    @Override
    public long asked(int opcode, MemorySegment record) {
        return named(record, asksStream(opcode) ? CudaOpcodes.streamOffset(opcode) : CudaOpcodes.eventOffset(opcode));
    }

    /** An id in a record; -1, which no object has, where the record has none. */
    private static long named(MemorySegment record, int offset) {
        long at = RecordLayout.HEADER_BYTES + (long) offset;
        return offset < 0 || at + Long.BYTES > record.byteSize() ? -1
            : record.get(ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), at);
    }

    @Override
    public boolean changes(int opcode, MemorySegment record, int asking, long asked) {
        if (isMath(opcode)) {
            return asksStream(asking); // the handle's state names the stream
        }
        if (asksStream(asking)) {
            return stream(named(record, CudaOpcodes.streamOffset(opcode))) == stream(asked);
        }
        boolean isWait = opcode == CudaOpcodes.cuStreamWaitEvent || opcode == CudaOpcodes.cuCtxWaitEvent;
        return named(record, CudaOpcodes.eventOffset(opcode)) == asked && (!isWait || isShared(asked));
    }

    /** The legacy default stream has two ids. */
    private static long stream(long id) {
        return id == StreamTable.LEGACY ? 0 : id;
    }

    /** Whether other sessions may use an event. The guest queries it to learn that its earlier calls have been made. */
    private boolean isShared(long event) {
        Handle handle = objects.handles().find(HandleKind.EVENT, event);
        return handle != null && handle.info(InterprocessEvent.class) != null;
    }

    @Override
    public int unfinished(int opcode, long asked) {
        return opcode == CudaOpcodes.cuStreamQuery || opcode == CudaOpcodes.cuEventQuery && !isShared(asked)
            ? CUresult.CUDA_ERROR_NOT_READY : 0;
    }

    @Override
    public boolean isLaunch(int opcode) {
        return opcode == CudaOpcodes.hwsLaunch || opcode == CudaOpcodes.cuGraphLaunch || isCapturable(opcode);
    }

    @Override
    public boolean isCapturable(int opcode) {
        return isMathWork(opcode);
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (isCublas(opcode)) {
            cublas.dispatch(call);
        } else if (isCublasLt(opcode)) {
            cublasLt.dispatch(call);
        } else if (isCufft(opcode)) {
            cufft.dispatch(call);
        } else {
            dispatcher.dispatch(call);
        }
    }

    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        return cublas.object(call, type, content);
    }

    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        return cublas.number(call, content, bytes);
    }

    @Override
    public void failed(int opcode, Call call) {
        region.failed(opcode, call);
    }
}
