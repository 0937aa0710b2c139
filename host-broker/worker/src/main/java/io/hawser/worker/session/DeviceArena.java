package io.hawser.worker.session;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.move.MappedSlab;
import io.hawser.worker.session.ArenaWindow.Piece;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The memory from which the guest's cuMemAlloc takes its blocks: slabs, which lie in one window of addresses for each
 * device. The guest chooses a slab's address and divides slabs by itself, so a block costs no round trip. This class
 * maps slabs, charges them to the quota, and adds them to the memory that the guest may address. The driver decides
 * where a window lies. Slabs belong to no context.
 *
 * <p>A slab consists of one piece of memory, or of several after {@link #divide}. A piece can go away and come back,
 * while its addresses stay. Session thread.
 */
public final class DeviceArena {
    private static final Logger LOG = System.getLogger(DeviceArena.class.getName());

    /** Slabs begin and end at multiples of this, as NVIDIA's driver demands for mappings. */
    public static final long PAGE_BYTES = 2L << 20;
    /** A window is this much larger than the memory, so that gaps between slabs never use it up. */
    private static final int WINDOW_FACTOR = 8;
    private static final long MAX_WINDOW_BYTES = 1L << 41;
    /** Wanted addresses of windows. Nothing else lies there in a common process of Linux. */
    private static final long FIRST_WINDOW = 0x2000_0000_0000L;
    /** Slabs of one session; each costs an entry here and in the driver. 512 GiB in pages. */
    private static final int MAX_SLABS = 1 << 18;
    private static final int ACCESS_NONE = 0; // CUmemAccess_flags
    private static final int ACCESS_READ_WRITE = 3;
    private static final long GRANULE_BYTES = 512; // blocks begin at multiples of this

    private final VirtualMemory memory; // null: no device has a window
    private final AllocationMap allocations;
    private final MemoryQuota quota;
    private final Handle owner = new Handle(HandleKind.MEM_ALLOCATION, 0, 0, null, null); // of all slabs
    private final Map<Integer, ArenaWindow> windows = new TreeMap<>();
    private final Set<Integer> served = new TreeSet<>(); // devices whose slabs the carrier can use
    private GuestMemory carrier; // null: none uses slabs
    private boolean isAdoptionLogged;
    private boolean isRefusalLogged;
    private int slabCount;
    private long pieceBytes = Long.MAX_VALUE;

    /**
     * Makes an arena without windows.
     *
     * @param memory the backend's; null when it has none, so that no device gets a window.
     * @param allocations receives the slabs.
     * @param quota charged for the slabs.
     */
    DeviceArena(VirtualMemory memory, AllocationMap allocations, MemoryQuota quota) {
        this.memory = memory;
        this.allocations = allocations;
        this.quota = quota;
    }

    /**
     * A range of addresses.
     *
     * @param address its first byte.
     * @param bytes its length; 0 for none.
     */
    public record Range(long address, long bytes) {}

    /**
     * Reserves the addresses of a device at the first call.
     *
     * @param device its number.
     * @param deviceBytes its memory.
     * @return the window; of length 0 where the backend cannot reserve one.
     */
    public Range window(int device, long deviceBytes) {
        ArenaWindow window = windows.computeIfAbsent(device, key -> reserve(device, deviceBytes));
        return new Range(window.address, window.bytes);
    }

    private ArenaWindow reserve(int device, long deviceBytes) {
        long bytes = Math.min(MAX_WINDOW_BYTES, Math.max(0, deviceBytes) * WINDOW_FACTOR) & -PAGE_BYTES;
        if (memory == null || bytes <= 0) {
            return new ArenaWindow(device, 0, 0);
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = memory.reserve(bytes, PAGE_BYTES, FIRST_WINDOW + device * MAX_WINDOW_BYTES, out);
            return result == 0 ? new ArenaWindow(device, out.get(ValueLayout.JAVA_LONG, 0), bytes)
                : new ArenaWindow(device, 0, 0);
        }
    }

    /**
     * Reserves the addresses that a session had at another worker. Call it before {@link #window} and the first work.
     *
     * @return CUresult; CUDA_ERROR_ALREADY_MAPPED when this process uses some of them.
     */
    int reserve(int device, long address, long bytes) {
        if (memory == null || windows.containsKey(device)) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Long.BYTES, Long.BYTES);
            int result = memory.reserve(bytes, PAGE_BYTES, address, out);
            if (result != 0) {
                return result;
            }
            long found = out.get(ValueLayout.JAVA_LONG, 0);
            if (found != address) { // the driver takes the wanted address for a hint
                memory.unreserve(found, bytes);
                return CUresult.CUDA_ERROR_ALREADY_MAPPED;
            }
            windows.put(device, new ArenaWindow(device, address, bytes));
            return 0;
        }
    }

    /** The windows with addresses, by device. */
    Collection<ArenaWindow> windows() {
        return windows.values().stream().filter(window -> window.bytes > 0).toList();
    }

    /** Whether the slabs are open to more devices than their own. */
    boolean isAccessedByPeers() {
        return windows.values().stream().anyMatch(window -> window.accessing().size() > 1);
    }

    /**
     * Lets later slabs consist of several pieces, so that long slabs can move in parts.
     *
     * @param maxBytes longest piece; whole pages.
     */
    void divide(long maxBytes) {
        pieceBytes = maxBytes;
    }

    /** Whether blocks must be reported by {@link #allocated} and {@link #freed}. */
    public boolean needsReports() {
        return memory != null && memory.opensBlocks();
    }

    /**
     * Maps a slab.
     *
     * @param device number of the device.
     * @param address in the device's window, not in another slab.
     * @param bytes whole pages.
     * @return CUresult; CUDA_ERROR_OUT_OF_MEMORY also when the quota does not allow it.
     */
    public int map(int device, long address, long bytes) {
        ArenaWindow window = windows.get(device);
        if (window == null || !window.hasRoom(address, bytes) || slabCount >= MAX_SLABS) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        for (long at = 0; at < bytes; at += pieceBytes) {
            Piece piece = new Piece(Math.min(pieceBytes, bytes - at));
            int result = fill(window, address + at, piece);
            if (result != 0) {
                empty(window, address, at);
                return result;
            }
            window.pieces.put(address + at, piece);
        }
        if (!allocations.add(address, bytes, owner)) {
            throw new IllegalStateException("the backend must not use addresses of the window: address=0x"
                + Long.toHexString(address) + " bytes=" + bytes);
        }
        window.slabs.put(address, bytes);
        slabCount++;
        return 0;
    }

    /** Gives a piece memory, and that memory the piece's addresses. */
    private int fill(ArenaWindow window, long address, Piece piece) {
        MemoryQuota.Charge charge = quota.claim(window.device, piece.bytes);
        if (charge == null) {
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(2 * Long.BYTES, Long.BYTES);
            int result = memory.createSlab(piece.bytes, window.device, out);
            if (result == 0) {
                long handle = out.get(ValueLayout.JAVA_LONG, 0);
                result = place(window, address, piece.bytes, handle);
                if (result == 0) {
                    piece.memory = handle;
                    piece.charge = charge;
                    return 0;
                }
                memory.release(handle);
            }
            charge.giveBack();
            return result;
        }
    }

    private int place(ArenaWindow window, long address, long bytes, long handle) {
        int result = memory.map(address, bytes, 0, handle);
        if (result != 0) {
            return result;
        }
        for (int device : window.accessing()) {
            result = result != 0 ? result : setAccess(address, bytes, device, ACCESS_READ_WRITE);
        }
        if (result != 0) {
            memory.unmap(address, bytes);
        }
        return result;
    }

    /** Sets a device's access to a slab. Where the guest reports blocks, these alone decide what kernels can use. */
    private int setAccess(long address, long bytes, int device, int flags) {
        return needsReports() ? 0 : memory.setAccess(address, bytes, device, flags);
    }

    /**
     * Unmaps a slab. The guest guarantees that no work uses it; other work faults.
     *
     * @param device number of the device.
     * @param address first byte of the slab.
     * @return CUresult; CUDA_ERROR_INVALID_VALUE when no slab begins there.
     */
    public int unmap(int device, long address) {
        ArenaWindow window = windows.get(device);
        Long bytes = window == null ? null : window.slabs.remove(address);
        if (bytes == null) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        slabCount--;
        allocations.removeMapping(address);
        window.blocks.subMap(address, address + bytes).clear();
        return empty(window, address, bytes);
    }

    /** Removes the pieces of a range, and their memory. */
    private int empty(ArenaWindow window, long address, long bytes) {
        int result = 0;
        SortedMap<Long, Piece> gone = window.pieces.subMap(address, address + bytes);
        for (Map.Entry<Long, Piece> piece : gone.entrySet()) {
            int emptied = piece.getValue().isAway() ? 0 : empty(piece.getKey(), piece.getValue());
            result = result != 0 ? result : emptied;
        }
        gone.clear();
        return result;
    }

    /** Takes a piece's memory away. */
    private int empty(long address, Piece piece) {
        if (piece.carried != null) {
            carrier.forget(piece.carried);
            piece.carried = null;
        }
        int result = memory.unmap(address, piece.bytes);
        int released = memory.release(piece.memory);
        piece.charge.giveBack();
        piece.charge = null;
        return result != 0 ? result : released;
    }

    /**
     * Lets kernels use a block, on a backend that {@link #needsReports}.
     *
     * @param device number of the device.
     * @param address first byte, a multiple of 512.
     * @param bytes length, inside one slab.
     * @return CUresult; CUDA_ERROR_INVALID_VALUE for another range.
     */
    public int allocated(int device, long address, long bytes) {
        if (!isInSlab(device, address, bytes)) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        memory.openBlock(address, wholeGranules(bytes));
        windows.get(device).blocks.put(address, wholeGranules(bytes));
        return 0;
    }

    /** Ends what {@link #allocated} began, with the same arguments and result. */
    public int freed(int device, long address, long bytes) {
        if (!isInSlab(device, address, bytes)) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        memory.closeBlock(address, wholeGranules(bytes));
        windows.get(device).blocks.remove(address);
        return 0;
    }

    private static long wholeGranules(long bytes) {
        return bytes + GRANULE_BYTES - 1 & -GRANULE_BYTES;
    }

    private boolean isInSlab(int device, long address, long bytes) {
        ArenaWindow window = windows.get(device);
        return window != null && needsReports() && address % GRANULE_BYTES == 0 && window.contains(address, bytes);
    }

    /**
     * A place in a piece of a slab.
     *
     * @param memory the backend's handle of the piece.
     * @param pieceBytes length of the piece.
     * @param offset of the place from the piece's first byte.
     * @param bytes length of the place.
     * @param charge the piece's.
     */
    public record Place(long memory, long pieceBytes, long offset, long bytes, MemoryQuota.Charge charge) {}

    /**
     * Finds the pieces of a range, for other processes. They then never go away ({@link #stays}).
     *
     * @param address first byte.
     * @param bytes length, any number.
     * @return in the order of addresses; empty when no slab contains the whole range, or the range is empty.
     */
    public List<Place> open(long address, long bytes) {
        List<Place> places = new ArrayList<>();
        windows.values().stream().filter(window -> window.contains(address, bytes)).findFirst()
            .ifPresent(window -> window.pieces(address, bytes).forEach((first, piece) -> {
                piece.isOpen = true;
                long begin = Math.max(address, first);
                long end = Math.min(address + bytes, first + piece.bytes);
                places.add(new Place(piece.memory, piece.bytes, begin - first, end - begin, piece.charge));
            }));
        return places;
    }

    /**
     * Lets a carrier use slabs of some devices (GPUDirect). Call it before the first record.
     *
     * @param near the devices' numbers.
     */
    public void serve(GuestMemory adopting, Set<Integer> near) {
        carrier = adopting;
        near.stream().filter(device -> memory != null && memory.servesAdapters(device)).forEach(served::add);
    }

    /**
     * A part of a piece that the carrier has adopted.
     *
     * @param piece the whole piece, at its device address.
     * @param offset of the part from the piece's first byte.
     * @param bytes length of the part.
     * @param device number of the piece's device.
     */
    record Carried(MemorySegment piece, long offset, long bytes, int device) {}

    /**
     * Finds the pieces of a range for the carrier, which adopts each at its first use.
     *
     * @param address first byte.
     * @param bytes length, any number.
     * @return in the order of addresses; empty when the carrier cannot use the whole range.
     */
    List<Carried> carried(long address, long bytes) {
        List<Carried> parts = new ArrayList<>();
        for (int device : served) {
            ArenaWindow window = windows.get(device);
            if (window != null && window.contains(address, bytes)) {
                for (Map.Entry<Long, Piece> entry : window.pieces(address, bytes).entrySet()) {
                    long first = entry.getKey();
                    Piece piece = entry.getValue();
                    if (!isAdopted(first, piece)) {
                        return List.of();
                    }
                    long begin = Math.max(address, first);
                    parts.add(new Carried(piece.carried, begin - first,
                        Math.min(address + bytes, first + piece.bytes) - begin, device));
                }
            }
        }
        return parts;
    }

    private boolean isAdopted(long address, Piece piece) {
        if (piece.carried == null && !piece.isRefused && !piece.isAway()) {
            MemorySegment whole = MemorySegment.ofAddress(address).reinterpret(piece.bytes);
            try {
                adopt(whole, piece.memory);
                piece.carried = whole;
            } catch (IOException e) {
                piece.isRefused = true;
                LOG.log(isRefusalLogged ? Level.DEBUG : Level.INFO,
                    "GPUDirect is not possible, so copies pass through host memory: {0}", e.getMessage());
                isRefusalLogged = true;
            }
        }
        return piece.carried != null;
    }

    /** By a dma-buf, else by the kernel's module for peer memory. */
    private void adopt(MemorySegment piece, long handle) throws IOException {
        String reason;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(Integer.BYTES, Integer.BYTES);
            int result = memory.dmaBuf(piece.address(), piece.byteSize(), handle, out);
            reason = "no dma-buf: CUresult=" + result;
            if (result == 0) {
                int descriptor = out.get(ValueLayout.JAVA_INT, 0);
                try {
                    carrier.adopt(piece, descriptor);
                    logAdopted("dma-buf");
                    return;
                } catch (IOException e) {
                    reason = "dma-buf: " + e.getMessage();
                } finally {
                    Descriptors.close(descriptor);
                }
            }
        }
        try {
            carrier.adopt(piece, -1);
            logAdopted("peer memory");
        } catch (IOException e) {
            throw new IOException(reason + "; peer memory: " + e.getMessage(), e);
        }
    }

    private void logAdopted(String way) {
        if (!isAdoptionLogged) {
            isAdoptionLogged = true;
            LOG.log(Level.INFO, "GPUDirect: the RDMA device uses the memory of the GPU by {0}", way);
        }
    }

    /** Makes what the carrier has written visible to later work. A context of the device is current. */
    int flush(int device) {
        return memory.flushAdapterWrites(device);
    }

    /** Whether other processes may use a piece, so that its memory must stay. */
    boolean stays() {
        return windows.values().stream().flatMap(window -> window.pieces.values().stream())
            .anyMatch(piece -> piece.isOpen);
    }

    /**
     * Maps the piece that begins at an address at further ones, also where the program has allocated nothing. The
     * caller ends the mapping, and has entered a context of the first device.
     *
     * @throws IOException if the piece cannot be mapped.
     */
    MappedSlab mapped(long address) throws IOException {
        MappedSlab[] mapped = new MappedSlab[1];
        try (Arena scratch = Arena.ofConfined()) {
            MemorySegment out = scratch.allocate(Integer.BYTES, Integer.BYTES);
            SessionState.require(share(address, out), "a slab cannot be exported");
            int descriptor = out.get(ValueLayout.JAVA_INT, 0);
            try {
                SessionState.require(MappedSlab.map(memory, descriptor, pieceBytes(address), 0, mapped),
                    "a slab cannot be mapped");
            } finally {
                Descriptors.close(descriptor);
            }
        }
        return mapped[0];
    }

    /** Addresses of the pieces that are away, or of the others. */
    List<Long> pieces(boolean areAway) {
        List<Long> addresses = new ArrayList<>();
        for (ArenaWindow window : windows.values()) {
            window.pieces.forEach((address, piece) -> {
                if (piece.isAway() == areAway) {
                    addresses.add(address);
                }
            });
        }
        return addresses;
    }

    /** Length of the piece that begins at an address. */
    long pieceBytes(long address) {
        return windowOf(address).pieces.get(address).bytes;
    }

    /**
     * Makes a descriptor of a piece's memory for the process that keeps it.
     *
     * @param out receives the descriptor (4 bytes), which the caller closes.
     * @return CUresult.
     */
    int share(long address, MemorySegment out) {
        return memory.share(windowOf(address).pieces.get(address).memory, out);
    }

    /** Takes away the memory of a piece, whose bytes another process has and which no work uses. Returns a CUresult. */
    int takeAway(long address) {
        return empty(address, windowOf(address).pieces.get(address));
    }

    /**
     * Gives a piece that is away new memory at its addresses. Its bytes are undefined.
     *
     * @return CUresult; CUDA_ERROR_OUT_OF_MEMORY also when the quota does not allow it.
     */
    int bringBack(long address) {
        ArenaWindow window = windowOf(address);
        Piece piece = window.pieces.get(address);
        int result = fill(window, address, piece);
        if (result == 0) {
            reopen(window, address, address + piece.bytes);
        }
        return result;
    }

    /** Lets kernels use the blocks of a range again; the first and the last may reach beyond it. */
    private void reopen(ArenaWindow window, long first, long end) {
        Map.Entry<Long, Long> below = window.blocks.lowerEntry(first);
        long belowEnd = below == null ? first : Math.min(end, below.getKey() + below.getValue());
        if (belowEnd > first) {
            memory.openBlock(first, belowEnd - first);
        }
        window.blocks.subMap(first, end)
            .forEach((address, bytes) -> memory.openBlock(address, Math.min(bytes, end - address)));
    }

    private ArenaWindow windowOf(long address) {
        return windows.values().stream().filter(window -> window.pieces.containsKey(address)).findFirst().orElseThrow();
    }

    /**
     * Gives or ends the access of another device to all slabs of a device, present and future.
     *
     * @param device number of the device with the slabs.
     * @param peer number of the other device.
     * @param isAllowed whether it has access from now on.
     * @return CUresult.
     */
    public int allowPeer(int device, int peer, boolean isAllowed) {
        ArenaWindow window = windows.get(device);
        if (window == null || !(isAllowed ? window.peers.add(peer) : window.peers.remove(peer))
            || window.sharing.contains(peer)) {
            return 0;
        }
        return change(window, peer, isAllowed);
    }

    /**
     * Gives other devices access to all slabs of a device, present and future, until the session ends.
     *
     * @param device number of the device with the slabs.
     * @param others numbers of devices that can access its memory.
     * @return CUresult.
     */
    public int share(int device, Iterable<Integer> others) {
        ArenaWindow window = windows.get(device);
        if (window == null) {
            return CUresult.CUDA_ERROR_INVALID_VALUE;
        }
        int result = 0;
        for (int other : others) {
            boolean isNew = !window.accessing().contains(other);
            window.sharing.add(other);
            int changed = isNew ? change(window, other, true) : 0;
            result = result != 0 ? result : changed;
        }
        return result;
    }

    private int change(ArenaWindow window, int peer, boolean isAllowed) {
        int result = 0;
        for (Map.Entry<Long, Piece> piece : window.pieces.entrySet()) {
            int changed = piece.getValue().isAway() ? 0 : setAccess(piece.getKey(), piece.getValue().bytes, peer,
                isAllowed ? ACCESS_READ_WRITE : ACCESS_NONE);
            result = result != 0 ? result : changed;
        }
        return result;
    }

    /** Unmaps all slabs and releases the windows; nothing uses them any more. */
    void close() {
        for (ArenaWindow window : windows.values()) {
            List<Long> addresses = new ArrayList<>(window.slabs.keySet());
            addresses.forEach(address -> unmap(window.device, address));
            if (window.bytes > 0) {
                memory.unreserve(window.address, window.bytes);
            }
        }
        windows.clear();
    }
}
