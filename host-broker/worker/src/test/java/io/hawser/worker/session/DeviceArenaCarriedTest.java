package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.channel.GuestMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Slabs that the carrier uses: each piece is adopted once, and forgotten before it goes. */
class DeviceArenaCarriedTest {
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final long BASE = 0x2000_0000_0000L;
    private static final int NO_DMA_BUF = 801;

    private final List<String> events = new ArrayList<>(); // pages are numbers from the window's first one
    private DeviceArena arena;
    private boolean hasDmaBufs = true;
    private boolean takesDmaBufs = true;
    private boolean takesAddresses;

    private final class Carrier implements GuestMemory {
        @Override
        public void adopt(MemorySegment memory, int descriptor) throws IOException {
            events.add((descriptor < 0 ? "address " : "dma-buf ") + page(memory.address()) + "+"
                + memory.byteSize() / PAGE);
            if (descriptor < 0 ? !takesAddresses : !takesDmaBufs) {
                throw new IOException("refused");
            }
        }

        @Override
        public void forget(MemorySegment memory) {
            events.add("forget " + page(memory.address()));
        }

        @Override
        public void write(long address, int key, MemorySegment memory, long offset, int bytes, Runnable sent) {
            throw new AssertionError();
        }

        @Override
        public void read(long address, int key, MemorySegment memory, long offset, int bytes, Runnable arrived) {
            throw new AssertionError();
        }

        @Override
        public int share(MemorySegment memory) {
            throw new AssertionError();
        }
    }

    private static long page(long address) {
        return (address - BASE) / PAGE;
    }

    @BeforeEach
    void open() {
        VirtualMemory memory = (VirtualMemory) Proxy.newProxyInstance(VirtualMemory.class.getClassLoader(),
            new Class<?>[] {VirtualMemory.class}, (proxy, method, arguments) -> switch (method.getName()) {
                case "reserve" -> {
                    ((MemorySegment) arguments[3]).set(ValueLayout.JAVA_LONG, 0, BASE);
                    yield 0;
                }
                case "unmap" -> {
                    events.add("unmap " + page((long) arguments[0]));
                    yield 0;
                }
                case "dmaBuf" -> {
                    int file = hasDmaBufs ? Descriptors.memory("dma-buf", 4096) : -1;
                    ((MemorySegment) arguments[3]).set(ValueLayout.JAVA_INT, 0, file);
                    yield hasDmaBufs ? 0 : NO_DMA_BUF;
                }
                case "servesAdapters" -> (int) arguments[0] != 2;
                default -> method.getReturnType() == boolean.class ? (Object) false : (Object) 0;
            });
        arena = new DeviceArena(memory, new AllocationMap(), MemoryQuota.alone(3, 0));
        arena.window(1, 100 * PAGE);
        arena.divide(2 * PAGE);
        arena.serve(new Carrier(), Set.of(1));
        arena.map(1, BASE, 5 * PAGE);
    }

    private List<String> taken() {
        List<String> all = List.copyOf(events);
        events.clear();
        return all;
    }

    /** Offset and length of each part. */
    private List<List<Long>> parts(long address, long bytes) {
        return arena.carried(address, bytes).stream().map(part -> List.of(part.offset(), part.bytes())).toList();
    }

    @Test
    void shouldAdoptEachPieceAtItsFirstUse() {
        assertEquals(List.of(List.of(2 * PAGE - 8, 8L), List.of(0L, 16L)), parts(BASE + 2 * PAGE - 8, 24));
        assertEquals(List.of("dma-buf 0+2", "dma-buf 2+2"), taken());
        assertEquals(List.of(List.of(8L, 2 * PAGE - 8), List.of(0L, 2 * PAGE), List.of(0L, PAGE)),
            parts(BASE + 8, 5 * PAGE - 8));
        assertEquals(List.of("dma-buf 4+1"), taken());
    }

    @Test
    void shouldUseNothingBesideASlab() {
        assertEquals(List.of(), parts(BASE + 5 * PAGE - 8, 9));
        assertEquals(List.of(), parts(BASE - 8, 16));
        assertEquals(List.of(), parts(BASE, 0));
        assertEquals(List.of(), parts(BASE, Long.MIN_VALUE));
        assertEquals(List.of(), taken());
    }

    @Test
    void shouldForgetAPieceBeforeItGoes() {
        parts(BASE, 4 * PAGE);
        taken();
        arena.takeAway(BASE);
        assertEquals(List.of("forget 0", "unmap 0"), taken());
        assertEquals(List.of(), parts(BASE, PAGE)); // it is away
        arena.bringBack(BASE);
        assertEquals(1, parts(BASE, PAGE).size());
        assertEquals(List.of("dma-buf 0+2"), taken());
        arena.unmap(1, BASE);
        assertEquals(List.of("forget 0", "unmap 0", "forget 2", "unmap 2", "unmap 4"), taken());
        assertEquals(List.of(), parts(BASE, PAGE));
    }

    @Test
    void shouldFallBackToAddresses() {
        takesAddresses = true;
        hasDmaBufs = false;
        assertEquals(1, parts(BASE, PAGE).size());
        assertEquals(List.of("address 0+2"), taken());
        hasDmaBufs = true;
        takesDmaBufs = false;
        assertEquals(1, parts(BASE + 2 * PAGE, PAGE).size());
        assertEquals(List.of("dma-buf 2+2", "address 2+2"), taken());
    }

    @Test
    void shouldAskOnceForAPieceThatIsRefused() {
        takesDmaBufs = false;
        assertEquals(List.of(), parts(BASE, PAGE));
        assertEquals(List.of("dma-buf 0+2", "address 0+2"), taken());
        assertEquals(List.of(), parts(BASE, PAGE));
        assertEquals(List.of(), taken());
        arena.takeAway(BASE);
        assertEquals(List.of("unmap 0"), taken());
    }

    @Test
    void shouldServeOnlyDevicesThatAreNearAndAble() {
        arena.window(2, 100 * PAGE); // its driver allows no adapter
        arena.serve(new Carrier(), Set.of(2));
        arena.map(2, BASE + 50 * PAGE, PAGE);
        assertEquals(List.of(), parts(BASE + 50 * PAGE, PAGE));
        assertEquals(1, parts(BASE, PAGE).size());
        assertEquals(List.of("dma-buf 0+2"), taken());
    }
}
