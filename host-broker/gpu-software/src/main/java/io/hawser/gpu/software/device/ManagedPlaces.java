package io.hawser.gpu.software.device;

import io.hawser.gpu.software.compile.PtxVariable;
import java.util.ArrayList;
import java.util.List;

/**
 * Places of the managed variables of a module, or of all modules of a library. They are freed when the last user has
 * released them. Thread-safe.
 */
final class ManagedPlaces {
    private final ManagedHeap heap;
    private final List<Long> addresses = new ArrayList<>(); // in the image's order
    private int users = 1;

    private ManagedPlaces(ManagedHeap heap) {
        this.heap = heap;
    }

    /** Allocates variables; the caller is the first user. */
    static ManagedPlaces allocate(ManagedHeap heap, List<PtxVariable> variables)
        throws LoadedModule.NoMemoryException {
        ManagedPlaces made = new ManagedPlaces(heap);
        for (PtxVariable variable : variables) {
            long address = heap.allocate(Math.max(1, variable.bytes()));
            if (address == 0) {
                made.release();
                throw new LoadedModule.NoMemoryException(variable.bytes());
            }
            made.addresses.add(address);
        }
        return made;
    }

    /** Address of the variable with this number. */
    long address(int number) {
        return addresses.get(number);
    }

    synchronized void retain() {
        users++;
    }

    synchronized void release() {
        if (--users == 0) {
            addresses.forEach(heap::free);
        }
    }
}
