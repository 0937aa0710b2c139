package io.hawser.worker.calls;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.VmmManualCalls;
import io.hawser.cuda.generated.VmmReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Virtual memory management. The session keeps its own tables of reservations and mappings, so a guest can neither use
 * addresses of the worker nor unmap memory of others. Session thread.
 */
final class VmmCalls implements VmmManualCalls<Call> {
    /** Reservations of one session; each costs an entry here and in the driver. */
    private static final int MAX_RESERVATIONS = 1 << 16;
    /** Mappings of one session; each costs an entry here and in the driver. */
    private static final int MAX_MAPPINGS = 1 << 20;
    /** Address space that one session may reserve: an eighth of a process's. */
    private static final long MAX_RESERVED_BYTES = 1L << 44;

    private record Mapping(long bytes, Handle memory) {}

    private final Session session;
    private final GuestObjects objects;
    private final VirtualMemory backend;
    private final ContextWaits waits;
    private final SharedHandles shared;
    private final TreeMap<Long, Long> reservations = new TreeMap<>(); // address to bytes; addresses are below 2^63
    private final TreeMap<Long, Mapping> mappings = new TreeMap<>();
    private long reservedBytes;

    VmmCalls(Session session, SharedHandles shared) {
        this.shared = shared;
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend().virtualMemory();
        this.waits = new ContextWaits(session);
    }

    private boolean isAbsent(Call call) {
        if (backend == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
        }
        return backend == null;
    }

    private boolean isNoDevice(Call call, int device) {
        boolean isNone = device < 0 || device >= session.backend().deviceCount();
        if (isNone) {
            call.fail(CudaResult.INVALID_DEVICE);
        }
        return isNone;
    }

    @Override
    public void hwsMemGranularity(Call call, int device, int compression, int usage, int option) {
        if (isAbsent(call) || isNoDevice(call, device)) {
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.granularity(device, compression, usage, option, out);
        VmmReplies.hwsMemGranularity(call.reply(), out.get(ValueLayout.JAVA_LONG, 0));
        call.finish(result);
    }

    @Override
    public void hwsMemReserve(Call call, long bytes, long alignment, long wanted) {
        if (isAbsent(call)) {
            return;
        }
        if (bytes <= 0 || bytes > MAX_RESERVED_BYTES - reservedBytes || reservations.size() >= MAX_RESERVATIONS) {
            call.fail(bytes == 0 ? CudaResult.INVALID_VALUE : CudaResult.OUT_OF_MEMORY);
            return;
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int result = backend.reserve(bytes, alignment, wanted, out);
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        if (result == 0) {
            reservations.put(address, bytes);
            reservedBytes += bytes;
            VmmReplies.hwsMemReserve(call.reply(), address);
        }
        call.finish(result);
    }

    @Override
    public void hwsMemUnreserve(Call call, long address, long bytes) {
        if (isAbsent(call)) {
            return;
        }
        Long reserved = reservations.get(address);
        if (reserved == null || reserved != bytes || overlaps(address, bytes)) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        reservations.remove(address);
        // Work issued before may still access the addresses, if only to fault there.
        waits.run(call, () -> {
            int result = backend.unreserve(address, bytes);
            reservedBytes -= bytes;
            call.finish(result);
        });
    }

    @Override
    public void hwsMemCreate(Call call, long allocationId, long bytes, int device, int compression, int usage) {
        if (isAbsent(call) || isNoDevice(call, device)) {
            return;
        }
        MemoryQuota.Charge charge = bytes <= 0 ? null : objects.quota().claim(device, bytes);
        if (charge == null) {
            call.fail(bytes == 0 ? CudaResult.INVALID_VALUE : CudaResult.OUT_OF_MEMORY);
            return;
        }
        MemorySegment out = call.scratch(2 * Long.BYTES);
        int result = backend.create(bytes, device, compression, usage, out);
        if (result != 0) {
            charge.giveBack();
        } else {
            objects.register(call, HandleKind.MEM_ALLOCATION, allocationId,
                out.get(ValueLayout.JAVA_LONG, 0), null, new Allocation(bytes, false));
            if (call.isRejected()) { // the session has ended
                charge.giveBack();
                return;
            }
            objects.keepCharge(objects.handles().find(HandleKind.MEM_ALLOCATION, allocationId), charge);
            VmmReplies.hwsMemCreate(call.reply(), out.get(ValueLayout.JAVA_INT, Long.BYTES));
        }
        call.finish(result);
    }

    @Override
    public void hwsMemRelease(Call call, long allocation, long allocationId) {
        Handle handle = call.lastObject();
        Allocation memory = handle.info(Allocation.class);
        if (memory.mappings != 0) {
            call.fatal("memory must be released after its last mapping: mappings=" + memory.mappings);
            return;
        }
        MemoryQuota.Charge charge = objects.takeCharge(handle);
        objects.drop(HandleKind.MEM_ALLOCATION, handle.id());
        if (memory.outlives(() -> {
            session.deferError(backend.release(allocation));
            charge.giveBack();
        })) {
            call.finish(CudaResult.SUCCESS);
            return;
        }
        int result = backend.release(allocation);
        charge.giveBack();
        call.finish(result);
    }

    @Override
    public void hwsMemExport(Call call, long allocation) {
        Handle handle = call.lastObject();
        Allocation memory = handle.info(Allocation.class);
        if (memory.isOpened) { // the guest knows its name
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        call.deferWithoutRecord();
        shared.share(allocation, memory.bytes, objects.chargeOf(handle), (result, name) -> {
            if (result == 0) {
                VmmReplies.hwsMemExport(call.reply(), name.low(), name.high());
            }
            call.finish(result);
        });
    }

    @Override
    public void hwsMemImport(Call call, long allocationId, long nameLow, long nameHigh) {
        if (isAbsent(call)) {
            return;
        }
        call.deferWithoutRecord();
        shared.open(new SharedHandles.Name(nameLow, nameHigh), (result, opened) -> {
            if (result == 0) {
                register(call, allocationId, opened);
            } else {
                call.finish(result);
            }
        });
    }

    private void register(Call call, long allocationId, SharedHandles.Opened opened) {
        objects.register(call, HandleKind.MEM_ALLOCATION, allocationId, opened.handle(), null,
            new Allocation(opened.bytes(), true));
        if (call.isRejected()) { // the session has ended
            opened.close();
            return;
        }
        // Costs nothing, but is given back however the session gives up the memory.
        MemoryQuota.Charge imported = objects.quota().claim(opened.device(), 0);
        imported.passTo(counted -> {
            opened.forget();
            counted.run();
        });
        objects.keepCharge(objects.handles().find(HandleKind.MEM_ALLOCATION, allocationId), imported);
        VmmReplies.hwsMemImport(call.reply(), opened.device(), opened.bytes(), opened.compression());
        call.finish(CudaResult.SUCCESS);
    }

    @Override
    public void hwsMemMap(Call call, long address, long bytes, long offset, long allocation) {
        Handle handle = call.lastObject();
        Allocation memory = handle.info(Allocation.class);
        if (!isReserved(address, bytes) || overlaps(address, bytes) || offset < 0 || offset > memory.bytes - bytes
            || mappings.size() >= MAX_MAPPINGS) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        int result = backend.map(address, bytes, offset, allocation);
        if (result == 0) {
            if (!objects.allocations().add(address, bytes, handle)) {
                throw new IllegalStateException("the backend must not reserve addresses that are in use: address=0x"
                    + Long.toHexString(address) + " bytes=" + bytes);
            }
            mappings.put(address, new Mapping(bytes, handle));
            memory.mappings++;
        }
        call.finish(result);
    }

    private boolean isReserved(long address, long bytes) {
        Map.Entry<Long, Long> reservation = reservations.floorEntry(address);
        return reservation != null && bytes > 0
            && bytes <= reservation.getValue() - (address - reservation.getKey());
    }

    /** Whether a mapping overlaps the range, which lies in a reservation. */
    private boolean overlaps(long address, long bytes) {
        Map.Entry<Long, Mapping> below = mappings.lowerEntry(address + bytes);
        return below != null && below.getKey() + below.getValue().bytes > address;
    }

    /** The mappings that fill a range exactly; null when there is a gap, or a mapping extends beyond it. */
    private NavigableMap<Long, Mapping> whole(long address, long bytes) {
        if (!isReserved(address, bytes)) {
            return null;
        }
        NavigableMap<Long, Mapping> inside = mappings.subMap(address, true, address + bytes, false);
        long end = address;
        for (Map.Entry<Long, Mapping> mapping : inside.entrySet()) {
            if (mapping.getKey() != end) {
                return null;
            }
            end += mapping.getValue().bytes;
        }
        return end == address + bytes ? inside : null;
    }

    /** The guest library refuses to share mappings by IPC handles, as NVIDIA's driver does. */
    @Override
    public void hwsMemUnmap(Call call, long address, long bytes) {
        NavigableMap<Long, Mapping> gone = whole(address, bytes);
        if (gone == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        gone.keySet().forEach(objects.allocations()::removeMapping); // later copies cannot use it from now on
        List<Mapping> ended = List.copyOf(gone.values());
        gone.clear();
        waits.run(call, () -> {
            int result = backend.unmap(address, bytes);
            ended.forEach(mapping -> mapping.memory.info(Allocation.class).mappings--);
            call.finish(result);
        });
    }

    @Override
    public void hwsMemSetAccess(Call call, long address, long bytes, int device, int flags) {
        if (isAbsent(call) || isNoDevice(call, device)) {
            return;
        }
        if (whole(address, bytes) == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        call.finish(backend.setAccess(address, bytes, device, flags));
    }
}
