package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.ManagedVariables.Variable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** With an allocator like the driver's: the lowest free address of a piece, in steps of 256 bytes. */
class NvidiaVariablePlacesTest {
    private static final long PIECE = 0x6dff_0000_0000L;
    private static final long STEP = 256;

    /** The piece of a process. */
    private static final class Piece implements NvidiaVariablePlaces.Fillers {
        private final TreeMap<Long, Long> used = new TreeMap<>(); // ends by address
        private long modules;
        private int loads;

        Piece() {
            allocate(8); // the anchor
        }

        long allocate(long bytes) {
            long at = PIECE;
            for (Map.Entry<Long, Long> range : used.entrySet()) {
                if (range.getKey() - at >= bytes) {
                    break;
                }
                at = range.getValue();
            }
            used.put(at, at + bytes + STEP - 1 & -STEP);
            return at;
        }

        void free(long address) {
            used.remove(address);
        }

        List<Variable> module(long... bytes) {
            List<Variable> variables = new ArrayList<>();
            for (long length : bytes) {
                variables.add(new Variable(allocate(length), length));
            }
            return variables;
        }

        @Override
        public Filler load(long bytes) {
            loads++;
            return new Filler(++modules, allocate(bytes), bytes);
        }

        @Override
        public void unload(Filler filler) {
            free(filler.address());
        }
    }

    private final Piece source = new Piece();
    private final Piece target = new Piece();
    private NvidiaVariablePlaces places;

    @BeforeEach
    void begin() {
        places = new NvidiaVariablePlaces(PIECE, target);
    }

    /** Loads a module at the target like one of the source. */
    private void restate(List<Variable> module) {
        places.expect(module);
        List<Variable> expected = places.take();
        places.prepare(expected);
        List<Variable> found = target.module(module.stream().mapToLong(Variable::bytes).toArray());
        assertEquals(module, found);
        places.placed(expected);
    }

    @Test
    void shouldLoadNoFillerWhenNothingLayBetween() {
        List<Variable> first = source.module(64, 80_000, 8);
        List<Variable> second = source.module(300);
        restate(first);
        restate(second);
        assertEquals(0, target.loads);
    }

    @Test
    void shouldFillTheGapsOfModulesThatAreGone() {
        List<Variable> gone = source.module(5000, 8);
        List<Variable> first = source.module(64, 80_000);
        source.allocate(700); // of a library, which the target has not loaded yet
        List<Variable> second = source.module(300);
        gone.forEach(variable -> source.free(variable.address()));
        restate(first);
        restate(second);
        assertEquals(2, target.loads);
        places.end();
        assertEquals(gone.getFirst().address(), target.allocate(5000), "the gap is free again");
    }

    @Test
    void shouldFillBehindMemoryThatALibraryHasTaken() {
        source.allocate(700);
        source.allocate(3000);
        List<Variable> first = source.module(64);
        target.allocate(700);
        restate(first);
    }

    @Test
    void shouldOpenAGapForAModuleThatLaterGotAPlaceInIt() {
        List<Variable> gone = source.module(5000);
        List<Variable> first = source.module(64);
        source.free(gone.getFirst().address());
        source.allocate(300);
        List<Variable> inGap = source.module(8, 600);
        List<Variable> last = source.module(10_000);
        restate(first);
        restate(inGap);
        restate(last);
    }

    @Test
    void shouldPlaceModulesInAnyOrder() {
        Random random = new Random(4);
        for (int round = 0; round < 300; round++) {
            Piece from = new Piece();
            Piece to = new Piece();
            NvidiaVariablePlaces here = new NvidiaVariablePlaces(PIECE, to);
            List<List<Variable>> modules = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                modules.add(from.module(1 + random.nextInt(3000)));
            }
            Map<Integer, List<Variable>> shuffled = new HashMap<>();
            modules.forEach(module -> shuffled.put(random.nextInt(), module));
            shuffled.entrySet().stream().sorted(Comparator.comparingInt(Map.Entry::getKey)).forEach(entry -> {
                List<Variable> module = entry.getValue();
                here.expect(module);
                List<Variable> expected = here.take();
                here.prepare(expected);
                assertEquals(module, to.module(module.getFirst().bytes()));
                here.placed(expected);
            });
        }
    }

    @Test
    void shouldLeaveOtherPiecesToTheDriver() {
        places.expect(List.of(new Variable(PIECE + (4 << 20), 8)));
        assertEquals(List.of(), places.take());
        NvidiaVariablePlaces unknown = new NvidiaVariablePlaces(0, target);
        unknown.expect(List.of(new Variable(PIECE + 512, 8)));
        assertEquals(List.of(), unknown.take());
    }
}
