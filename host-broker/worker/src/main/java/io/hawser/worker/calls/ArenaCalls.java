package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.ArenaManualCalls;
import io.hawser.cuda.generated.ArenaReplies;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.DeviceArena;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** The arena of device memory. Session thread. */
final class ArenaCalls implements ArenaManualCalls<Call>, MemoryParts {
    private static final Logger LOG = System.getLogger(ArenaCalls.class.getName());
    private static final int CAN_ACCESS = 0; // of peerAttribute: whether the first device can access the other's memory

    private final GuestObjects objects;
    private final GpuBackend backend;
    private final DeviceArena arena;
    private final MemoryQuota quota;
    private final ContextWaits waits;

    ArenaCalls(Session session) {
        this.objects = session.objects();
        this.backend = session.backend();
        this.arena = objects.arena();
        this.quota = objects.quota();
        this.waits = new ContextWaits(session);
    }

    @Override
    public void hwsArenaMap(Call call, int device, long address, long bytes, int last) {
        if (last == 0) {
            call.answerAtOnce();
        }
        call.finish(arena.map(device, address, bytes));
    }

    @Override
    public void hwsArenaShare(Call call, int device) {
        int devices = backend.deviceCount();
        if (device < 0 || device >= devices) {
            call.finish(CUresult.CUDA_ERROR_INVALID_DEVICE);
            return;
        }
        List<Integer> others = new ArrayList<>();
        MemorySegment can = call.scratch(Integer.BYTES);
        for (int other = 0; other < devices; other++) {
            if (other != device && backend.peerAttribute(other, device, CAN_ACCESS, can) == 0
                && can.get(ValueLayout.JAVA_INT_UNALIGNED, 0) != 0) {
                others.add(other);
            }
        }
        int result = arena.share(device, others);
        if (result != 0) { // those devices fault when they use managed memory
            LOG.log(Level.WARNING, "managed memory is not open to all devices: device={0} CUresult={1}", device,
                result);
        }
        call.finish(0);
    }

    @Override
    public void hwsContextsWait(Call call) {
        waits.run(call, () -> call.finish(0));
    }

    @Override
    public void hwsContextsQuery(Call call) {
        ArenaReplies.hwsContextsQuery(call.reply(), hasWork() ? 0 : 1);
        call.finish(0);
    }

    private boolean hasWork() {
        for (Handle context : objects.handles().all(HandleKind.CONTEXT)) {
            if (context.isFailed() || objects.enter(context) != 0) {
                continue; // a lost context runs nothing
            }
            for (StreamState stream : objects.streams().of(context)) {
                if (backend.driver().cuStreamQuery(stream.stream()) == CUresult.CUDA_ERROR_NOT_READY) {
                    return true;
                }
            }
        }
        return false;
    }

    @Override
    public void hwsArenaUnmap(Call call, int device, long address) {
        call.finish(arena.unmap(device, address));
    }

    @Override
    public void hwsArenaAllocated(Call call, int device, long address, long bytes) {
        call.finish(arena.allocated(device, address, bytes));
    }

    @Override
    public void hwsArenaFreed(Call call, int device, long address, long bytes) {
        call.finish(arena.freed(device, address, bytes));
    }

    @Override
    public List<Part> parts(long address, long bytes) {
        return arena.open(address, bytes).stream().map(place -> new Part(place.memory(), place.pieceBytes(),
            place.offset(), place.bytes(), place.charge())).toList();
    }

    @Override
    public void hwsArenaKept(Call call, long bytes) {
        if (bytes < 0 || bytes > quota.heldBytes()) {
            call.fatal("a guest must hold the memory that it keeps: bytes=" + bytes + " heldBytes="
                + quota.heldBytes());
            return;
        }
        ArenaReplies.hwsArenaKept(call.reply(), quota.keep(bytes) ? 1 : 0);
        call.finish(0);
    }
}
