package io.hawser.gpu.software.device;

import io.hawser.gpu.software.compile.PtxImage;
import io.hawser.gpu.software.compile.PtxModule;
import io.hawser.gpu.software.compile.PtxVariable;
import io.hawser.gpu.software.image.DeviceImage;
import io.hawser.gpu.software.image.ImageException;
import io.hawser.gpu.software.ptx.PtxException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A module: linked PTX, its variables in one block of device memory, managed ones apart, and the handles of its
 * requested kernels.
 */
final class LoadedModule {
    /** Memory for the variables ran out. */
    static final class NoMemoryException extends Exception {
        NoMemoryException(long bytes) {
            super("device memory must hold the module's variables: bytes=" + bytes, null, false, false);
        }
    }

    final PtxImage image;
    final Map<String, Long> functions = new HashMap<>();
    /** The library and context that this module serves; null for a module loaded by cuModuleLoadData. */
    final Library library;
    Context context;
    private final Map<PtxVariable, Long> addresses = new HashMap<>();
    private final ManagedPlaces managed;
    private final List<PtxVariable> managedVariables;
    private final long block;
    private final long bytes;

    private LoadedModule(PtxImage image, DeviceMemory memory, ManagedHeap heap, Library library)
        throws NoMemoryException {
        this.image = image;
        this.library = library;
        managedVariables = image.variables().stream().filter(PtxVariable::managed).toList();
        Map<PtxVariable, Long> offsets = new HashMap<>();
        long end = 0;
        for (PtxVariable variable : image.variables()) {
            if (variable.managed()) {
                continue;
            }
            end = (end + variable.alignment() - 1) & -(long) variable.alignment();
            offsets.put(variable, end);
            end += variable.bytes();
        }
        bytes = end + managedVariables.stream().mapToLong(PtxVariable::bytes).sum();
        boolean isPlaced = library != null && library.managed != null;
        managed = isPlaced ? library.managed : ManagedPlaces.allocate(heap, managedVariables);
        block = offsets.isEmpty() ? 0 : memory.allocate(Math.max(1, end));
        if (block == 0 && !offsets.isEmpty()) {
            if (!isPlaced) {
                managed.release();
            }
            throw new NoMemoryException(end);
        }
        if (library != null) {
            library.managed = managed;
            managed.retain(); // a library keeps its variables until it is unloaded
        }
        offsets.forEach((variable, offset) -> addresses.put(variable, block + offset));
        for (int i = 0; i < managedVariables.size(); i++) {
            addresses.put(managedVariables.get(i), managed.address(i));
        }
        image.place(memory.arena(), addresses, isPlaced);
    }

    /** Loads an image: unpacks, parses, links and places it. The library may be null. */
    static LoadedModule load(MemorySegment bytes, DeviceMemory memory, ManagedHeap heap, Library library)
        throws ImageException, PtxException, NoMemoryException {
        List<PtxModule> modules = new ArrayList<>();
        for (String text : DeviceImage.ptx(bytes, Properties.COMPUTE_CAPABILITY)) {
            modules.add(PtxModule.compile(text));
        }
        return new LoadedModule(PtxImage.link(modules), memory, heap, library);
    }

    /** Size of the device memory of its variables. */
    long bytes() {
        return bytes;
    }

    /** The variable of a name that is visible to the host, or null. */
    PtxVariable variable(String name) {
        return image.variable(name);
    }

    long address(PtxVariable variable) {
        return addresses.get(variable);
    }

    /** Its managed variables, in a fixed order. */
    List<PtxVariable> managedVariables() {
        return managedVariables;
    }

    void free(DeviceMemory memory) {
        managed.release();
        if (block != 0) {
            memory.free(block);
        }
    }
}
