package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaDispatcher;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CallDispatcher;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamTable;

/** The described functions of one session: the generated dispatcher and the hand-written calls. */
public final class Calls implements CallDispatcher {
    private static final int LIBRARY_SHIFT = 16;
    private static final int LIBRARY = CudaOpcodes.cuCtxSynchronize >>> LIBRARY_SHIFT;

    private final CudaDispatcher<Call> dispatcher;
    private final RegionCopies region;

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param shared the guest's region; null over another carrier.
     */
    public Calls(Session session, SharedRegion shared) {
        LaunchCalls launches = new LaunchCalls(session);
        MemoryCalls memory = new MemoryCalls(session);
        StreamCalls streams = new StreamCalls(session);
        StreamMemoryCalls streamMemory = new StreamMemoryCalls(session);
        region = new RegionCopies(session, shared);
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
            streams,
            streams,
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
        return opcode >>> LIBRARY_SHIFT == LIBRARY; // the dispatcher rejects numbers without a description
    }

    @Override
    public boolean mayWaitForDevice(int opcode) {
        return CudaOpcodes.mayWaitForDevice(opcode);
    }

    @Override
    public boolean endsHostFunction(int opcode) {
        return CudaOpcodes.endsHostFunction(opcode);
    }

    @Override
    public boolean isLaunch(int opcode) {
        return opcode == CudaOpcodes.hwsLaunch || opcode == CudaOpcodes.cuGraphLaunch;
    }

    @Override
    public void dispatch(int opcode, Call call) {
        dispatcher.dispatch(call);
    }

    @Override
    public void failed(int opcode, Call call) {
        region.failed(opcode, call);
    }
}
