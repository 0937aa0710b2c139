package io.hawser.worker.calls;

import io.hawser.cuda.Move;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDispatcher;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublaslt.CublasLtOpcodes;
import io.hawser.cuda.generated.cudnn.CudnnOpcodes;
import io.hawser.cuda.generated.cufft.CufftOpcodes;
import io.hawser.cuda.generated.curand.CurandOpcodes;
import io.hawser.cuda.generated.cusolver.CusolverOpcodes;
import io.hawser.cuda.generated.cusparse.CusparseOpcodes;
import io.hawser.cuda.generated.cusparselt.CusparseLtOpcodes;
import io.hawser.cuda.generated.nccl.NcclOpcodes;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.BulkArea;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.channel.tcp.Stripes;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CallDispatcher;
import io.hawser.worker.session.CopyWindow;
import io.hawser.worker.session.GraphExecState;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamTable;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;

/** The described functions of one session: the generated dispatcher and the hand-written calls. */
public final class Calls implements CallDispatcher {
    private static final ValueLayout.OfLong ID = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int LIBRARY_SHIFT = 16;
    private static final int MATH_LIBRARIES = 16; // more than the highest number of one
    private static final int DRIVER = CudaOpcodes.cuCtxSynchronize >>> LIBRARY_SHIFT;

    private final CudaDispatcher<Call> dispatcher;
    private final RegionCopies region;
    private final GuestObjects objects;
    private final MathLibrary[] math = new MathLibrary[MATH_LIBRARIES]; // by the number of the library; null for none
    private LibraryCalls serving; // the library of the call in service

    /** A math library: which of its opcodes put work into a stream, which one ends a handle, and its calls. */
    private record MathLibrary(IntPredicate isWork, int destroys, HandleKind kind, LibraryCalls calls,
        IntFunction<Move> move, IntFunction<String> name) {
    }

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param shared the guest's region; null over another carrier.
     * @param bulk the memory for copies by chunk: the region or a mirror; null over another carrier.
     * @param stripes connections that may join the session.
     */
    public Calls(Session session, SharedRegion shared, BulkArea bulk, Stripes stripes) {
        LaunchCalls launches = new LaunchCalls(session);
        MemoryCalls memory = new MemoryCalls(session);
        StreamMemoryCalls streamMemory = new StreamMemoryCalls(session);
        region = new RegionCopies(session, bulk, stripes);
        session.work().useLanes(stripes.data());
        objects = session.objects();
        use(CublasOpcodes::isCredited, CublasOpcodes.cublasDestroy_v2, HandleKind.CUBLAS, new CublasCalls(session),
            CublasOpcodes::move, CublasOpcodes::name);
        use(CublasLtOpcodes::isCredited, CublasLtOpcodes.cublasLtDestroy, HandleKind.CUBLASLT,
            new CublasLtCalls(session),
            CublasLtOpcodes::move, CublasLtOpcodes::name);
        use(CufftOpcodes::isCredited, CufftOpcodes.hwsFftDestroy, HandleKind.CUFFT, new CufftCalls(session),
            CufftOpcodes::move, CufftOpcodes::name);
        use(CudnnOpcodes::isCredited, CudnnOpcodes.cudnnDestroy, HandleKind.CUDNN, new CudnnCalls(session),
            CudnnOpcodes::move, CudnnOpcodes::name);
        use(CusolverOpcodes::isCredited, CusolverOpcodes.cusolverDnDestroy, HandleKind.CUSOLVER,
            new CusolverCalls(session),
            CusolverOpcodes::move, CusolverOpcodes::name);
        use(CusparseOpcodes::isCredited, CusparseOpcodes.cusparseDestroy, HandleKind.CUSPARSE,
            new CusparseCalls(session),
            CusparseOpcodes::move, CusparseOpcodes::name);
        use(CurandOpcodes::isCredited, CurandOpcodes.hwsRandDestroy, HandleKind.CURAND, new CurandCalls(session),
            CurandOpcodes::move, CurandOpcodes::name);
        use(CusparseLtOpcodes::isCredited, CusparseLtOpcodes.hwsSltDestroy, HandleKind.CUSPARSELT,
            new CusparseLtCalls(session),
            CusparseLtOpcodes::move, CusparseLtOpcodes::name);
        use(NcclOpcodes::isCredited, NcclOpcodes.hwsNcclEnd, HandleKind.NCCL, new NcclCalls(session),
            NcclOpcodes::move, NcclOpcodes::name);
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
        return isDriver(opcode) || mathOf(opcode) != null;
    }

    private static boolean isDriver(int opcode) {
        return opcode >>> LIBRARY_SHIFT == DRIVER;
    }

    private void use(IntPredicate isWork, int destroys, HandleKind kind, LibraryCalls calls, IntFunction<Move> move,
        IntFunction<String> name) {
        math[destroys >>> LIBRARY_SHIFT] = new MathLibrary(isWork, destroys, kind, calls, move, name);
    }

    /** The math library of a call; null for a call of the driver or an unknown one. */
    private MathLibrary mathOf(int opcode) {
        int number = opcode >>> LIBRARY_SHIFT;
        return number < MATH_LIBRARIES ? math[number] : null;
    }

    @Override
    public Move move(int opcode) {
        MathLibrary library = mathOf(opcode);
        return library == null ? CudaOpcodes.move(opcode) : library.move.apply(opcode);
    }

    @Override
    public String name(int opcode) {
        MathLibrary library = mathOf(opcode);
        return library == null ? CudaOpcodes.name(opcode) : library.name.apply(opcode);
    }

    /**
     * A math library loads the code of a kernel when it needs it, and the driver may then wait for the device. The
     * guest waits for the first call of a kind, so work that it does not wait for finds its code loaded.
     */
    @Override
    public boolean mayWaitForDevice(int opcode, boolean isAwaited) {
        MathLibrary library = mathOf(opcode);
        return library == null ? CudaOpcodes.mayWaitForDevice(opcode)
            : !isCommunication(opcode) && (isAwaited || !library.isWork.test(opcode));
    }

    /**
     * Whether a call is one of NCCL. Other ranks may wait for it, so it is neither postponed nor needs a turn.
     */
    static boolean isCommunication(int opcode) {
        return opcode >>> LIBRARY_SHIFT == NcclOpcodes.hwsNcclMake >>> LIBRARY_SHIFT;
    }

    @Override
    public boolean endsHostFunction(int opcode) {
        return CudaOpcodes.endsHostFunction(opcode);
    }

    @Override
    public boolean issuesWork(int opcode) {
        return CudaOpcodes.issuesWork(opcode) || isCapturable(opcode);
    }

    @Override
    public boolean opensGate(int opcode) {
        return CudaOpcodes.opensGate(opcode);
    }

    @Override
    public boolean copiesToRegion(int opcode) {
        return RegionCopies.isCopyToRegion(opcode);
    }

    @Override
    public boolean asks(int opcode) {
        return asksStream(opcode) || opcode == CudaOpcodes.cuEventQuery || opcode == CudaOpcodes.cuEventSynchronize;
    }

    @Override
    public boolean tellsProgress(int opcode) {
        return opcode == CudaOpcodes.cuEventQuery || opcode == CudaOpcodes.cuStreamQuery
            || opcode == CudaOpcodes.cuEventElapsedTime_v2;
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
            : record.get(ID, at);
    }

    @Override
    public boolean changes(int opcode, MemorySegment record, int asking, long asked) {
        if (mathOf(opcode) != null) {
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
    public boolean needsTurn(int opcode, MemorySegment bytes, long offset) {
        return opcode == CudaOpcodes.hwsLaunch
            || (opcode == CudaOpcodes.cuGraphLaunch ? !waitsForRanks(bytes, offset)
                : isCapturable(opcode) && !isCommunication(opcode));
    }

    @Override
    public CopyWindow.Direction copies(int opcode) {
        return isDriver(opcode) ? CopyCalls.direction(opcode) : CopyWindow.Direction.NONE;
    }

    /** Whether the kernels of a graph that a cuGraphLaunch launches may wait for other ranks. */
    private boolean waitsForRanks(MemorySegment bytes, long offset) {
        long at = offset + RecordLayout.HEADER_BYTES; // of the first argument, which a wrong record lacks
        Handle exec = at + Long.BYTES > bytes.byteSize() ? null
            : objects.handles().find(HandleKind.GRAPH_EXEC, bytes.get(ID, at));
        return exec != null && !exec.isFailed()
            && exec.info(GraphExecState.class).waits() != GraphState.Waits.FOR_NOTHING;
    }

    @Override
    public boolean isCapturable(int opcode) {
        MathLibrary library = mathOf(opcode);
        return library != null && library.isWork.test(opcode);
    }

    @Override
    public void dispatch(int opcode, Call call) {
        MathLibrary library = mathOf(opcode);
        if (library == null) {
            dispatcher.dispatch(call);
        } else if (opcode == library.destroys && LibraryHandles.hasEnded(objects, library.kind, call.in())) {
            call.finish(0); // the success of every library
        } else {
            serving = library.calls;
            serving.dispatch(opcode, call);
        }
    }

    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        return serving.object(call, type, content);
    }

    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        return serving.number(call, content, bytes);
    }

    @Override
    public MemorySegment workspace(Call call, long bytes) {
        return serving.workspace(call, bytes);
    }

    @Override
    public void end() {
        for (MathLibrary library : math) {
            if (library != null) {
                library.calls.end();
            }
        }
    }

    @Override
    public void failed(int opcode, Call call) {
        region.failed(opcode, call);
    }
}
