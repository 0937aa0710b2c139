package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.ManagedVariables;
import io.hawser.cuda.generated.CudaManagedNative;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.LongUnaryOperator;

/** The variables of modules, above all the managed ones. A context must be current. Session thread only. */
final class NvidiaManagedVariables implements ManagedVariables {
    private static final int IS_MANAGED = 8; // CU_POINTER_ATTRIBUTE_IS_MANAGED
    private static final int ATTACH_GLOBAL = 1; // CU_MEM_ATTACH_GLOBAL
    /** The driver takes addresses for managed memory in pieces of this size. */
    private static final long PIECE_BYTES = 2L << 20;
    private static final int FIRST_PIECES = 16;
    private static final int MAX_MOVES = 8; // a guest asks for them; bounds the number of blocks
    private static final int GRANULE_BYTES = 512; // the driver rounds variables up to it

    private static final Logger LOG = System.getLogger(NvidiaManagedVariables.class.getName());
    private static final String FILLER = filler();

    private final Images images;
    private final LongUnaryOperator moduleHere; // a library's module in the current context, or a negated CUresult
    private int moves;

    NvidiaManagedVariables(Images images, LongUnaryOperator moduleHere) {
        this.images = images;
        this.moduleHere = moduleHere;
    }

    @Override
    public List<Variable> of(long module) {
        DeviceSymbols symbols = images.symbols(module);
        List<Variable> found = symbols == null ? List.of() : find(module, symbols.managed(), true);
        return found == null ? List.of() : found;
    }

    /** The other variables; null when they are not known. */
    List<Variable> others(long module) {
        DeviceSymbols symbols = images.symbols(module);
        if (symbols == null || !symbols.isComplete()) {
            return null;
        }
        // A version of the code for another GPU may mark a variable as managed that this version does not mark.
        Set<String> names = new TreeSet<>(symbols.variables());
        names.addAll(symbols.managed());
        return find(module, names, false);
    }

    private List<Variable> find(long module, Set<String> names, boolean areManaged) {
        long here = names.isEmpty() ? 0 : moduleHere.applyAsLong(module);
        if (here < 0) {
            return null;
        }
        List<Variable> variables = new ArrayList<>();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(2L * Long.BYTES, Long.BYTES);
            for (String name : names) {
                if (Images.global(here, name, out) != 0) {
                    continue; // another version of the code has it
                }
                long address = out.get(ValueLayout.JAVA_LONG, 0);
                long bytes = out.get(ValueLayout.JAVA_LONG, Long.BYTES);
                int result = CudaManagedNative.cuPointerGetAttribute(out, IS_MANAGED, address);
                boolean isManaged = result == 0 && out.get(ValueLayout.JAVA_INT, 0) != 0;
                if (isManaged == areManaged && bytes > 0) {
                    variables.add(new Variable(address, bytes));
                }
            }
        }
        return variables;
    }

    /**
     * Driver 580 packs small variables of all modules into pieces of 2 MiB. So this takes the next pieces by managed
     * memory that nothing uses, which costs no memory. Then it fills the remaining piece by a module with variables of
     * all sizes. Both stay until their context ends. The distance doubles each time.
     */
    @Override
    public void move(int times) {
        for (; moves < Math.min(times, MAX_MOVES); moves++) {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
                int result = 0;
                for (int i = 0; i < FIRST_PIECES << moves && result == 0; i++) {
                    result = CudaManagedNative.cuMemAllocManaged(out, PIECE_BYTES, ATTACH_GLOBAL);
                }
                result = result != 0 ? result : CudaNative.cuModuleLoadDataEx(out, arena.allocateFrom(FILLER), 0,
                    MemorySegment.NULL, MemorySegment.NULL);
                if (result != 0) {
                    LOG.log(Level.WARNING, "managed variables may have no other addresses: CUresult={0}", result);
                    return;
                }
            }
        }
    }

    private static String filler() {
        StringBuilder ptx = new StringBuilder(".version 6.3\n.target sm_75\n.address_size 64\n");
        for (long bytes = PIECE_BYTES / 2; bytes >= GRANULE_BYTES; bytes /= 2) {
            ptx.append(".visible .global .attribute(.managed) .align 8 .b8 hawser_").append(bytes).append('[')
                .append(bytes).append("];\n");
        }
        return ptx.toString();
    }
}
