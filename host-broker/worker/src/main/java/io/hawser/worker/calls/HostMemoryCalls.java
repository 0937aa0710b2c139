package io.hawser.worker.calls;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HostMemoryManualCalls;
import io.hawser.cuda.generated.HostMemoryReplies;
import io.hawser.shm.region.RegionLayout;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.TreeMap;

/** Pinned memory of the guest: parts of the region that devices access directly. Session thread. */
final class HostMemoryCalls implements HostMemoryManualCalls<Call> {
    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final SharedRegion region;
    private final RegionCopies copies;
    private final ContextWaits waits;
    private final TreeMap<Long, HostMap> maps = new TreeMap<>(); // by offset in the region

    /** Pinned memory of the guest; the device address is 0 when the backend's kernels cannot use it. */
    private record HostMap(long bytes, long device) {}

    /**
     * Makes the calls of a session.
     *
     * @param session the session.
     * @param region the guest's region; null over another carrier.
     * @param copies checks the region's bounds.
     */
    HostMemoryCalls(Session session, SharedRegion region, RegionCopies copies) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
        this.region = region;
        this.copies = copies;
        this.waits = new ContextWaits(session);
    }

    @Override
    public void hwsHostMap(Call call, long regionOffset, long byteCount) {
        if (!copies.allows(call, regionOffset, byteCount, 0)) {
            return;
        }
        if (byteCount == 0 || (regionOffset | byteCount) % RegionLayout.GRANULE_BYTES != 0
            || overlaps(regionOffset, byteCount)) {
            call.fatal("host memory must be whole granules that are not mapped yet: regionOffset=" + regionOffset
                + " byteCount=" + byteCount);
            return;
        }
        long device = 0;
        if (backend.canMapHost()) {
            MemorySegment out = call.scratch(Long.BYTES);
            int result = backend.mapHost(region.memory().asSlice(regionOffset, byteCount), out);
            if (result != 0) {
                call.fail(result);
                return;
            }
            device = out.get(ValueLayout.JAVA_LONG, 0);
            if (!objects.allocations().add(device, byteCount, null)) {
                throw new IllegalStateException("the backend must not return an address that is in use: address=0x"
                    + Long.toHexString(device) + " bytes=" + byteCount);
            }
        }
        maps.put(regionOffset, new HostMap(byteCount, device));
        call.keepUntil(journalNumber(regionOffset));
        HostMemoryReplies.hwsHostMap(call.reply(), device);
        call.finish(0);
    }

    /** The journal's number of a mapping. */
    private static long journalNumber(long regionOffset) {
        return -1 - regionOffset; // ids of handles are positive
    }

    private boolean overlaps(long offset, long bytes) {
        Map.Entry<Long, HostMap> below = maps.lowerEntry(offset + bytes);
        return below != null && below.getKey() + below.getValue().bytes > offset;
    }

    @Override
    public void hwsHostUnmap(Call call, long regionOffset) {
        HostMap map = region == null ? null : maps.remove(regionOffset);
        if (map == null) {
            call.fatal("host memory must have been mapped: regionOffset=" + regionOffset);
            return;
        }
        if (map.device != 0) {
            objects.allocations().removeHost(map.device); // later copies cannot use it from now on
        }
        session.moving().journal().forget(journalNumber(regionOffset));
        waits.run(call, () -> call.finish(map.device == 0 ? 0 : backend.unmapHost(map.device)));
    }
}
