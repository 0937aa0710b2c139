package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import java.util.Arrays;

/**
 * The device memory that a session may address: its own allocations and the global variables of its modules. The ranges
 * are kept in sorted arrays, so that the check of a copy allocates nothing. Addresses are unsigned. Session thread
 * only.
 */
public final class AllocationMap {
    private static final int INITIAL_CAPACITY = 64;

    private long[] starts = new long[INITIAL_CAPACITY];
    private long[] lengths = new long[INITIAL_CAPACITY];
    private Handle[] owners = new Handle[INITIAL_CAPACITY];
    private MemoryQuota.Charge[] charges = new MemoryQuota.Charge[INITIAL_CAPACITY];
    private int count;
    private long ownedBytes;
    private long removals;

    /**
     * Adds a range that has no charge of its own.
     *
     * @param address its first byte.
     * @param bytes its length, over 0.
     * @param owner the handle that it ends with: an allocation's context, a global variable's module, a mapping's
     *     memory; null for the guest's own memory that kernels can use.
     * @return false, with nothing changed, when it overlaps another range.
     */
    public boolean add(long address, long bytes, Handle owner) {
        return add(address, bytes, owner, null);
    }

    /**
     * Adds an allocation.
     *
     * @param address its first byte.
     * @param bytes its length, over 0.
     * @param owner its context.
     * @param charge its charge on the quota; given back when the context ends.
     * @return false, with nothing changed, when it overlaps another range.
     */
    public boolean add(long address, long bytes, Handle owner, MemoryQuota.Charge charge) {
        if (bytes <= 0) {
            throw new IllegalArgumentException("a range must hold a byte: bytes=" + bytes);
        }
        int at = floor(address) + 1;
        boolean overlapsBelow = at > 0 && address - starts[at - 1] < lengths[at - 1];
        boolean overlapsAbove = at < count && starts[at] - address < bytes;
        if (overlapsBelow || overlapsAbove) {
            return false;
        }
        if (count == starts.length) {
            starts = Arrays.copyOf(starts, count * 2);
            lengths = Arrays.copyOf(lengths, count * 2);
            owners = Arrays.copyOf(owners, count * 2);
            charges = Arrays.copyOf(charges, count * 2);
        }
        System.arraycopy(starts, at, starts, at + 1, count - at);
        System.arraycopy(lengths, at, lengths, at + 1, count - at);
        System.arraycopy(owners, at, owners, at + 1, count - at);
        System.arraycopy(charges, at, charges, at + 1, count - at);
        starts[at] = address;
        lengths[at] = bytes;
        owners[at] = owner;
        charges[at] = charge;
        count++;
        if (isAllocation(at)) {
            ownedBytes += bytes;
        }
        return true;
    }

    /**
     * Whether a copy may access these bytes: all inside one range, or inside adjacent mappings.
     *
     * @param address first byte.
     * @param bytes unsigned length; 0 accesses nothing and is always allowed.
     * @return true when it may.
     */
    public boolean contains(long address, long bytes) {
        if (bytes == 0) {
            return true;
        }
        int at = floor(address);
        if (at < 0) {
            return false;
        }
        long offset = address - starts[at];
        if (Long.compareUnsigned(offset, lengths[at]) >= 0) {
            return false;
        }
        long here = lengths[at] - offset;
        return Long.compareUnsigned(bytes, here) <= 0 || isMappedBehind(at, bytes - here);
    }

    /** Whether at least {@code bytes} bytes, 1 or more, are mapped directly after the range. */
    private boolean isMappedBehind(int range, long bytes) {
        long missing = bytes;
        for (int at = range; isMapping(at) && at + 1 < count && isMapping(at + 1)
            && starts[at] + lengths[at] == starts[at + 1]; at++) {
            if (Long.compareUnsigned(missing, lengths[at + 1]) <= 0) {
                return true;
            }
            missing -= lengths[at + 1];
        }
        return false;
    }

    private boolean isMapping(int at) {
        return owners[at] != null && owners[at].kind() == HandleKind.MEM_ALLOCATION;
    }

    /**
     * Length of the session's own allocation that begins at an address.
     *
     * @param address its first byte.
     * @return bytes, or -1 when none begins there.
     */
    public long lengthAt(long address) {
        int at = floor(address);
        return at >= 0 && starts[at] == address && isAllocation(at) ? lengths[at] : -1;
    }

    /**
     * Context of the session's own allocation that begins at an address.
     *
     * @param address its first byte.
     * @return the context, or null when none begins there.
     */
    public Handle ownerAt(long address) {
        return lengthAt(address) < 0 ? null : owners[floor(address)];
    }

    /**
     * Charge of the session's own allocation that begins at an address.
     *
     * @param address its first byte.
     * @return its charge, or null when none begins there.
     */
    public MemoryQuota.Charge chargeAt(long address) {
        return lengthAt(address) < 0 ? null : charges[floor(address)];
    }

    /**
     * Removes the session's own allocation that begins at an address. The caller frees the memory and then gives its
     * charge back.
     *
     * @param address its first byte.
     * @return its bytes, or -1 when none begins there.
     */
    public long remove(long address) {
        long bytes = lengthAt(address);
        if (bytes >= 0) {
            removeAt(floor(address));
        }
        return bytes;
    }

    /**
     * Removes the guest's own memory that begins at an address.
     *
     * @param address its first byte, added without an owner.
     */
    public void removeHost(long address) {
        int at = floor(address);
        if (at < 0 || starts[at] != address || owners[at] != null) {
            throw new IllegalArgumentException("host memory must have been added: address=0x"
                + Long.toHexString(address));
        }
        removeAt(at);
    }

    /**
     * Removes a mapping.
     *
     * @param address its first byte, added with its memory as the owner.
     */
    public void removeMapping(long address) {
        int at = floor(address);
        if (at < 0 || starts[at] != address || !isMapping(at)) {
            throw new IllegalArgumentException("a mapping must have been added: address=0x"
                + Long.toHexString(address));
        }
        removeAt(at);
    }

    /**
     * Removes a module's variable.
     *
     * @param address its first byte.
     */
    void removeVariable(long address) {
        int at = floor(address);
        if (at >= 0 && starts[at] == address && owners[at] != null && owners[at].kind() == HandleKind.MODULE) {
            removeAt(at);
        }
    }

    /**
     * Removes all ranges of a module or a context, and gives their charges back.
     *
     * @param owner the handle, which has ended.
     */
    public void removeOwner(Handle owner) {
        for (int i = count - 1; i >= 0; i--) {
            if (owner == owners[i]) {
                MemoryQuota.Charge charge = charges[i];
                removeAt(i);
                if (charge != null) {
                    charge.giveBack();
                }
            }
        }
    }

    /**
     * Counts removals. While the count is unchanged, the result of an earlier {@link #contains} still holds.
     *
     * @return counts up.
     */
    public long removals() {
        return removals;
    }

    private void removeAt(int at) {
        removals++;
        if (isAllocation(at)) {
            ownedBytes -= lengths[at];
        }
        count--;
        System.arraycopy(starts, at + 1, starts, at, count - at);
        System.arraycopy(lengths, at + 1, lengths, at, count - at);
        System.arraycopy(owners, at + 1, owners, at, count - at);
        System.arraycopy(charges, at + 1, charges, at, count - at);
        owners[count] = null;
        charges[count] = null;
    }

    /**
     * Sum of the session's own allocations.
     *
     * @return bytes, without global variables.
     */
    public long allocatedBytes() {
        return ownedBytes;
    }

    private boolean isAllocation(int at) {
        return owners[at] != null && owners[at].kind() == HandleKind.CONTEXT;
    }

    /** Index of the last range that begins at or below the address, or -1. */
    private int floor(long address) {
        int low = 0;
        int high = count - 1;
        while (low <= high) {
            int middle = (low + high) >>> 1;
            if (Long.compareUnsigned(starts[middle], address) <= 0) {
                low = middle + 1;
            } else {
                high = middle - 1;
            }
        }
        return high;
    }
}
