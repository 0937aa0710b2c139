package io.hawser.gpu.software.exec;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;

/**
 * The texture and surface objects of a device, by the numbers that kernels take as parameters. A number is never given
 * twice: a kernel that uses a destroyed object faults. Any thread finds objects; one thread at a time adds and removes.
 */
public final class KernelObjects {
    /** An object of this table. */
    public sealed interface Entry permits Texture, Surface {}

    private record Slot(long number, Object owner, Entry entry) {}

    private static final int INDEX_BITS = 20;
    /** Most objects at a time; the guest's session has the same limit. */
    private static final int MAX_OBJECTS = 1 << INDEX_BITS;

    // Published with the launch: work that a thread issues later sees all that happened before.
    private volatile Slot[] slots = new Slot[16];
    private final Deque<Integer> free = new ArrayDeque<>();
    private int used;
    private long generation = 1;

    /** Adds an object and returns its number; 0 when the table is full. */
    public synchronized long add(Object owner, Entry entry) {
        if (free.isEmpty() && used == MAX_OBJECTS) {
            return 0;
        }
        int index = free.isEmpty() ? used++ : free.remove();
        if (index == slots.length) {
            slots = Arrays.copyOf(slots, 2 * index);
        }
        long number = generation++ << INDEX_BITS | index;
        slots[index] = new Slot(number, owner, entry);
        return number;
    }

    /** Removes an object; false if there is none of this number. */
    public synchronized boolean remove(long number) {
        int index = (int) (number & MAX_OBJECTS - 1);
        if (index >= used || slots[index] == null || slots[index].number != number) {
            return false;
        }
        slots[index] = null;
        free.add(index);
        return true;
    }

    /** Removes all objects of an owner. */
    public synchronized void removeAll(Object owner) {
        for (int index = 0; index < used; index++) {
            if (slots[index] != null && slots[index].owner == owner) {
                remove(slots[index].number);
            }
        }
    }

    /** Whether an object of the number exists. */
    public boolean contains(long number) {
        return find(number) != null;
    }

    /** Number of objects. */
    public synchronized int size() {
        return used - free.size();
    }

    private Entry find(long number) {
        Slot[] known = slots;
        int index = (int) (number & MAX_OBJECTS - 1);
        Slot slot = index < known.length ? known[index] : null;
        return slot != null && slot.number == number ? slot.entry : null;
    }

    Texture texture(long number) {
        if (find(number) instanceof Texture texture) {
            return texture;
        }
        throw missing("texture", number);
    }

    Surface surface(long number) {
        if (find(number) instanceof Surface surface) {
            return surface;
        }
        throw missing("surface", number);
    }

    private static DeviceFault missing(String kind, long number) {
        return new DeviceFault(DeviceFault.LAUNCH_FAILED, kind + " must exist: number=0x" + Long.toHexString(number)
            + Faults.line());
    }
}
