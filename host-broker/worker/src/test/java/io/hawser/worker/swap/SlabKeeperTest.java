package io.hawser.worker.swap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import io.hawser.cuda.generated.CUresult;
import io.hawser.shm.os.Descriptors;
import io.hawser.worker.control.ControlSocket;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.memory.AvailableMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A keeper of the software GPU, and sessions that may be hostile. */
@Timeout(60)
class SlabKeeperTest {
    private static final long SLAB = 2L << 20;
    private static final int ROUNDS = 2000;

    @TempDir
    private Path folder;
    private GpuBackend backend;
    private AvailableMemory available;
    private SlabKeeper keeper;
    private final List<Long> allocated = new CopyOnWriteArrayList<>();
    private ControlSocket session;

    @BeforeEach
    void open() throws IOException {
        backend = ServiceLoader.load(GpuBackendProvider.class).stream().map(ServiceLoader.Provider::get)
            .filter(provider -> provider.name().equals("software")).findFirst().orElseThrow()
            .open(new BackendOptions(0, 1, 1, List.of()));
        available = AvailableMemory.open();
        keeper = new SlabKeeper(backend, HostMemory.BLOCK_BYTES, available, allocated::add);
        keeper.start(0);
        session = connect();
    }

    @AfterEach
    void close() throws IOException {
        session.end();
        session.close();
        keeper.close();
        backend.close();
        available.close();
    }

    private ControlSocket connect() throws IOException {
        int[] pair = Rig.socketPair();
        keeper.serve(pair[0], 4 * SLAB);
        return new ControlSocket(pair[1]);
    }

    /** Sends a request and returns the result of its reply. */
    private static int ask(ControlSocket from, SlabFrame.Action action, long slab, long bytes, int descriptor)
        throws IOException {
        from.write(new SlabFrame(action, slab, bytes, 0).encode(), descriptor);
        SlabFrame reply = SlabFrame.decode(from.read().json());
        assertEquals(action, reply.action());
        assertEquals(slab, reply.slab());
        return reply.result();
    }

    /** Anonymous memory of a slab's length, as the software GPU shares it. */
    private static int slab() throws IOException {
        return Descriptors.memory("slab", SLAB);
    }

    private int store(long slab) throws IOException {
        int memory = slab();
        try {
            return ask(session, SlabFrame.Action.STORE, slab, SLAB, memory);
        } finally {
            Descriptors.close(memory);
        }
    }

    @Test
    void shouldGiveBackTheBytesOfASlab() throws IOException {
        int memory = slab();
        byte[] data = new byte[(int) SLAB];
        new Random(1).nextBytes(data);
        Path file = Path.of("/proc/self/fd/" + memory);
        Files.write(file, data, StandardOpenOption.WRITE);
        assertEquals(0, ask(session, SlabFrame.Action.STORE, 7, SLAB, memory));
        Files.write(file, new byte[(int) SLAB], StandardOpenOption.WRITE);
        assertEquals(0, ask(session, SlabFrame.Action.LOAD, 7, SLAB, memory));
        assertArrayEquals(data, Files.readAllBytes(file));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.LOAD, 7, SLAB, memory),
            "a slab that is back is forgotten");
        Descriptors.close(memory);
    }

    @Test
    void shouldRefuseWhatNoHonestSessionSends() throws IOException {
        Path file = Files.write(folder.resolve("file"), new byte[(int) SLAB]);
        int other = Descriptors.open(file);
        assertEquals(0, store(1));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, store(1), "a slab that it has");
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.STORE, 2, SLAB, -1));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.STORE, 2, SLAB, other),
            "its length could change");
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.STORE, 2, 0, other));
        assertEquals(CUresult.CUDA_ERROR_OUT_OF_MEMORY, ask(session, SlabFrame.Action.STORE, 2, Long.MAX_VALUE, other));
        int memory = slab();
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.STORE, 2, 2 * SLAB, memory),
            "another length than the memory's");
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(session, SlabFrame.Action.LOAD, 1, 2 * SLAB, memory));
        assertEquals(0, ask(session, SlabFrame.Action.LOAD, 1, SLAB, memory), "the slab is still there");
        Descriptors.close(memory);
        Descriptors.close(other);
    }

    @Test
    void shouldHoldASessionToItsLimit() throws IOException {
        for (int slab = 0; slab < 4; slab++) {
            assertEquals(0, store(slab));
        }
        assertEquals(CUresult.CUDA_ERROR_OUT_OF_MEMORY, store(4));
        assertEquals(List.of(HostMemory.BLOCK_BYTES), allocated);
        int memory = slab();
        assertEquals(0, ask(session, SlabFrame.Action.LOAD, 0, SLAB, memory));
        Descriptors.close(memory);
        assertEquals(0, store(4));
    }

    @Test
    void shouldShowASessionNothingOfAnother() throws IOException {
        assertEquals(0, store(1));
        ControlSocket other = connect();
        int memory = slab();
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, ask(other, SlabFrame.Action.LOAD, 1, SLAB, memory));
        other.end();
        other.close();
        assertEquals(0, ask(session, SlabFrame.Action.LOAD, 1, SLAB, memory));
        Descriptors.close(memory);
    }

    /** Several requests at once, each for its own slab, in both directions. */
    @Test
    void shouldAnswerRequestsThatDoNotWaitForEachOther() throws IOException {
        int memory = slab();
        byte[] data = new byte[(int) SLAB];
        new Random(2).nextBytes(data);
        Files.write(Path.of("/proc/self/fd/" + memory), data, StandardOpenOption.WRITE);
        for (int slab = 0; slab < 4; slab++) {
            session.write(new SlabFrame(SlabFrame.Action.STORE, slab, SLAB, 0).encode(), memory);
        }
        Descriptors.close(memory);
        Set<Long> stored = new TreeSet<>();
        for (int slab = 0; slab < 4; slab++) {
            SlabFrame reply = SlabFrame.decode(session.read().json());
            assertEquals(0, reply.result());
            stored.add(reply.slab());
        }
        assertEquals(Set.of(0L, 1L, 2L, 3L), stored);
        int[] memories = {slab(), slab(), slab(), slab()};
        for (int slab = 0; slab < 4; slab++) {
            session.write(new SlabFrame(SlabFrame.Action.LOAD, slab, SLAB, 0).encode(), memories[slab]);
        }
        for (int slab = 0; slab < 4; slab++) {
            assertEquals(0, SlabFrame.decode(session.read().json()).result());
        }
        for (int copy : memories) {
            assertArrayEquals(data, Files.readAllBytes(Path.of("/proc/self/fd/" + copy)));
            Descriptors.close(copy);
        }
    }

    /** Sessions that end while their slabs are copied leave nothing in the keeper, which has one block. */
    @Test
    void shouldFreeWhatASessionStoresWhileItEnds() throws IOException {
        long rounds = 4 * HostMemory.BLOCK_BYTES / (4 * SLAB);
        for (int round = 0; round < rounds; round++) {
            ControlSocket ending = connect();
            int memory = slab();
            for (int slab = 0; slab < 4; slab++) {
                ending.write(new SlabFrame(SlabFrame.Action.STORE, slab, SLAB, 0).encode(), memory);
            }
            Descriptors.close(memory);
            if (round % 2 == 0) {
                ending.read(); // else it ends before the first reply
            }
            ending.end();
            ending.close();
        }
        for (int slab = 0; slab < 4; slab++) {
            int result = store(slab);
            for (int i = 0; i < 200 && result == CUresult.CUDA_ERROR_OUT_OF_MEMORY; i++) { // it learns by the sockets
                result = store(slab);
            }
            assertEquals(0, result);
        }
    }

    @Test
    void shouldEndASessionThatSendsGarbageAlone() throws IOException {
        ControlSocket hostile = connect();
        hostile.write(new byte[] {1, 2, 3});
        assertNull(hostile.read());
        hostile.close();
        assertEquals(0, store(1));
    }

    @Test
    void shouldReadOrRefuseAnyFrame() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int i = 0; i < ROUNDS; i++) {
            byte[] frame = new byte[random.nextInt(40)];
            random.nextBytes(frame);
            if (frame.length > 4 && random.nextBoolean()) {
                frame[1] = frame[2] = frame[3] = 0;
            }
            try {
                assertArrayEquals(frame, SlabFrame.decode(frame).encode(), () -> "seed=" + seed);
            } catch (IOException e) {
                assertEquals("a frame of a keeper must have an action, a slab and a length: bytes=" + frame.length,
                    e.getMessage());
            }
        }
    }
}
