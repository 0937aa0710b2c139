package io.hawser.worker.session;

import java.lang.foreign.MemorySegment;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/** The addresses of one device's slabs in a {@link DeviceArena}, and what lies there. Session thread. */
final class ArenaWindow {
    final int device;
    final long address;
    final long bytes; // 0: none
    final TreeMap<Long, Long> slabs = new TreeMap<>(); // lengths; addresses are below 2^63
    final TreeMap<Long, Piece> pieces = new TreeMap<>(); // of all slabs
    final TreeMap<Long, Long> blocks = new TreeMap<>(); // lengths of opened ones, where they are reported
    final Set<Integer> peers = new TreeSet<>(); // devices that the guest gave access to each slab
    final Set<Integer> sharing = new TreeSet<>(); // devices that have access in any case

    ArenaWindow(int device, long address, long bytes) {
        this.device = device;
        this.address = address;
        this.bytes = bytes;
        sharing.add(device);
    }

    /** The devices with access to each slab. */
    Set<Integer> accessing() {
        Set<Integer> all = new TreeSet<>(peers);
        all.addAll(sharing);
        return all;
    }

    /** Whether one slab contains a whole range. */
    boolean contains(long first, long length) {
        Map.Entry<Long, Long> slab = slabs.floorEntry(first);
        return slab != null && length > 0 && length <= slab.getValue() - (first - slab.getKey());
    }

    /** The pieces of a range that {@link #contains} has found. */
    SortedMap<Long, Piece> pieces(long first, long length) {
        return pieces.subMap(pieces.floorKey(first), first + length);
    }

    boolean hasRoom(long first, long length) {
        long offset = first - address;
        if (offset < 0 || length <= 0 || length > bytes - offset || (first | length) % DeviceArena.PAGE_BYTES != 0) {
            return false;
        }
        Map.Entry<Long, Long> below = slabs.lowerEntry(first + length);
        return below == null || below.getKey() + below.getValue() <= first;
    }

    /** A piece of a slab. While it is away, it has no memory here and no charge. */
    static final class Piece {
        final long bytes;
        long memory;
        MemoryQuota.Charge charge; // null while it is away
        boolean isOpen; // another process may have opened its memory
        MemorySegment carried; // null unless the carrier has adopted it
        boolean isRefused; // the carrier has

        Piece(long bytes) {
            this.bytes = bytes;
        }

        boolean isAway() {
            return charge == null;
        }
    }
}
