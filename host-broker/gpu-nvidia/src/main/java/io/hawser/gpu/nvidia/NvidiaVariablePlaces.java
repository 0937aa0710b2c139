package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.ManagedVariables.Variable;
import io.hawser.cuda.backend.VariablePlaces;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Driver 580 lays each variable at the lowest address that is free, in steps of 256 bytes, of a piece of 2 MiB that all
 * modules share (measured on an H200). In the process that a session has left, modules that are gone and modules of
 * libraries lay between its own ones. Here modules without code fill these gaps until all variables have their places.
 * Only the first piece is known, which the worker keeps from its start ({@link DriverStart#anchor}). Session thread.
 */
final class NvidiaVariablePlaces implements VariablePlaces {
    private static final Logger LOG = System.getLogger(NvidiaVariablePlaces.class.getName());
    private static final long PIECE_BYTES = 2L << 20;
    private static final long STEP_BYTES = 256;
    /** A library may have taken memory as well; each try finds the first address behind it. */
    private static final int MAX_TRIES = 4;

    /** Loads modules that only take memory. */
    interface Fillers {
        /** A filler that exists. */
        record Filler(long module, long address, long bytes) {}

        /** Takes so many bytes; null on failure. */
        Filler load(long bytes);

        /** Gives the bytes back. */
        void unload(Filler filler);
    }

    private final Fillers driver;
    private final long piece; // address of the first one; 0: unknown
    private final List<Fillers.Filler> fillers = new ArrayList<>();
    private long next; // no address of the piece below is free
    private Fillers.Filler opened; // whose place the next module gets a part of; null for none
    private List<Variable> expected = List.of();

    /**
     * Places variables behind the first one.
     *
     * @param anchor address of the worker's own variable, which is shorter than a step; 0 for none.
     */
    NvidiaVariablePlaces(long anchor, Fillers driver) {
        this.driver = driver;
        piece = anchor & -PIECE_BYTES;
        next = anchor + STEP_BYTES;
    }

    @Override
    public void expect(List<Variable> variables) {
        expected = piece == 0 ? List.of()
            : variables.stream().filter(variable -> (variable.address() & -PIECE_BYTES) == piece).toList();
    }

    /** The variables of the next image that lie in the piece; only once. */
    List<Variable> take() {
        List<Variable> taken = expected;
        expected = List.of();
        return taken;
    }

    /** Prepares for the driver to lay out these variables next. */
    void prepare(List<Variable> variables) {
        if (variables.isEmpty()) {
            return;
        }
        long first = variables.stream().mapToLong(Variable::address).min().orElseThrow();
        if (first > next) {
            fillTo(first);
        } else if (first < next) {
            open(first);
        }
    }

    /** The driver has laid out these variables. */
    void placed(List<Variable> variables) {
        if (variables.isEmpty()) {
            return;
        }
        long end = variables.stream().mapToLong(v -> v.address() + v.bytes()).max().orElseThrow();
        end = end + STEP_BYTES - 1 & -STEP_BYTES;
        if (opened != null) {
            long rest = opened.address() + opened.bytes() - end;
            opened = null;
            if (rest > 0) {
                keep(driver.load(rest), end);
            }
        }
        next = Math.max(next, end);
    }

    private void fillTo(long address) {
        for (int i = 0; i < MAX_TRIES && next < address; i++) {
            Fillers.Filler filler = driver.load(address - next);
            if (keep(filler, next)) {
                next = address;
            } else if (filler == null || filler.address() < next) {
                return; // the check of the addresses refuses the move
            } else {
                next = filler.address(); // behind memory of a library
            }
        }
    }

    /** Keeps a filler that lies where it must; else unloads it. */
    private boolean keep(Fillers.Filler filler, long wanted) {
        if (filler != null && filler.address() == wanted) {
            fillers.add(filler);
            return true;
        }
        if (filler != null) {
            driver.unload(filler);
        }
        return false;
    }

    /** Frees the place of a filler from an address on. */
    private void open(long address) {
        for (Fillers.Filler filler : fillers) {
            if (filler.address() <= address && address < filler.address() + filler.bytes()) {
                fillers.remove(filler);
                driver.unload(filler);
                opened = filler;
                if (address > filler.address()) {
                    keep(driver.load(address - filler.address()), filler.address());
                }
                return;
            }
        }
    }

    @Override
    public void end() {
        LOG.log(Level.DEBUG, "modules that kept places of variables: {0}", fillers.size());
        fillers.forEach(driver::unload);
        fillers.clear();
    }

    /** Fillers of the driver; in the current context. */
    static final class DriverFillers implements Fillers {
        private static final String NAME = "hawser_filler";

        @Override
        public Filler load(long bytes) {
            String ptx = ".version 6.0\n.target sm_60\n.address_size 64\n.visible .global .align 8 .b8 " + NAME + "["
                + bytes + "];\n";
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment out = arena.allocate(2L * Long.BYTES, Long.BYTES);
                int result = CudaNative.cuModuleLoadDataEx(out, arena.allocateFrom(ptx), 0, MemorySegment.NULL,
                    MemorySegment.NULL);
                if (result != 0) {
                    LOG.log(Level.WARNING, "no memory keeps the places of variables: {0}", Natives.errorName(result));
                    return null;
                }
                long module = out.get(ValueLayout.JAVA_LONG, 0);
                result = Images.global(module, NAME, out);
                return new Filler(module, result == 0 ? out.get(ValueLayout.JAVA_LONG, 0) : 0, bytes);
            }
        }

        @Override
        public void unload(Filler filler) {
            int result = CudaNative.cuModuleUnload(filler.module());
            if (result != 0) {
                LOG.log(Level.WARNING, "memory that kept places stays in use: {0}", Natives.errorName(result));
            }
        }
    }
}
