package io.hawser.broker.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The table agrees with a model, whatever captured workers of several vGPUs send in whatever order. */
class SharedMemoryModelTest {
    private static final int STEPS = 20_000;
    private static final int SESSIONS = 6; // the even ones belong to one vGPU, the odd ones to another
    private static final int NAMES = 8; // few, so that sessions meet
    private static final int MAX_DESCRIPTORS = 1 << 20;

    /** One sharing of a name, which ends with its last importer. */
    private static final class Sharing {
        private final String vgpu;
        private final WorkerMessage.Share share;
        private final int owner;
        private final int[] imports = new int[SESSIONS];
        private boolean isOwned = true;

        Sharing(String vgpu, WorkerMessage.Share share, int owner) {
            this.vgpu = vgpu;
            this.share = share;
            this.owner = owner;
        }

        /** The broker makes one for an event. */
        boolean hasDescriptor() {
            return share.passed() || !share.isMemory();
        }

        boolean isImported() {
            for (int count : imports) {
                if (count > 0) {
                    return true;
                }
            }
            return false;
        }

        boolean isNamed(String vgpuName, String name) {
            return vgpu.equals(vgpuName) && share.name().equals(name);
        }
    }

    private final Map<String, Long> charges = new HashMap<>();
    private final SharedMemory memory = new SharedMemory(new ChargeSums(charges), MAX_DESCRIPTORS);
    private final List<Sharing> sharings = new ArrayList<>();

    private static String vgpu(int session) {
        return session % 2 == 0 ? "even" : "odd";
    }

    private Sharing sharing(int session, String name) {
        return sharings.stream().filter(s -> s.isNamed(vgpu(session), name)).findFirst().orElse(null);
    }

    private void share(Random random, int session, String name) throws IOException {
        boolean isPassed = random.nextBoolean();
        long bytes = random.nextInt(4) == 0 ? 0 : 1 + random.nextInt(1 << 20);
        WorkerMessage.Share share = new WorkerMessage.Share(name, "ab", bytes, random.nextInt(64),
            random.nextInt(1 << 20), isPassed);
        boolean isNew = sharing(session, name) == null && (share.isMemory() || !isPassed);
        assertEquals(isNew, memory.share(session, vgpu(session), share,
            isPassed ? Descriptors.memory("hawser-model", 1) : SharedMemory.NO_DESCRIPTOR));
        if (isNew) {
            sharings.add(new Sharing(vgpu(session), share, session));
        }
    }

    private void find(int session, String name) {
        Sharing sharing = sharing(session, name);
        Optional<SharedMemory.Found> found = memory.find(session, vgpu(session), name);
        assertEquals(sharing != null && sharing.isOwned, found.isPresent());
        if (found.isPresent()) {
            assertEquals(sharing.share, found.get().share());
            assertEquals(sharing.hasDescriptor(), found.get().descriptor() >= 0);
            if (sharing.owner != session) {
                sharing.imports[session]++;
            }
        }
    }

    private void release(int session, String name) {
        memory.release(session, vgpu(session), name);
        Sharing sharing = sharing(session, name);
        if (sharing != null) {
            sharing.imports[session] = Math.max(0, sharing.imports[session] - 1);
        }
    }

    private void unshare(int session, String name) {
        memory.unshare(session, vgpu(session), name);
        Sharing sharing = sharing(session, name);
        if (sharing != null && sharing.owner == session) {
            sharing.isOwned = false;
        }
    }

    private void end(int session) {
        memory.sessionEnded(session, vgpu(session));
        for (Sharing sharing : sharings) {
            sharing.imports[session] = 0;
            sharing.isOwned &= sharing.owner != session;
        }
    }

    private void compare() {
        sharings.removeIf(sharing -> !sharing.isOwned && !sharing.isImported());
        assertEquals(sharings.size(), memory.size());
        assertEquals(sharings.stream().filter(sharing -> sharing.isOwned && sharing.hasDescriptor()).count(),
            memory.descriptors());
        for (String vgpu : List.of("even", "odd")) {
            assertEquals(sharings.stream()
                .filter(sharing -> !sharing.isOwned && sharing.vgpu.equals(vgpu) && sharing.share.isMemory())
                .mapToLong(sharing -> sharing.share.chargedBytes()).sum(), charges.getOrDefault(vgpu, 0L));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void shouldAgreeWithAModel(long seed) throws IOException {
        Random random = new Random(seed);
        int counted = 0;
        for (int step = 0; step < STEPS; step++) {
            int session = random.nextInt(SESSIONS);
            String name = String.format("%032x", random.nextInt(NAMES));
            switch (random.nextInt(20)) {
                case 0, 1, 2, 3, 4 -> share(random, session, name);
                case 5, 6, 7, 8, 9, 10 -> find(session, name);
                case 11, 12, 13, 14 -> release(session, name);
                case 15, 16, 17, 18 -> unshare(session, name);
                default -> end(session);
            }
            compare();
            counted += charges.values().stream().anyMatch(bytes -> bytes > 0) ? 1 : 0;
        }
        assertTrue(counted > STEPS / 10, "memory without an owner must be frequent: counted=" + counted);
        for (int session = 0; session < SESSIONS; session++) {
            end(session);
        }
        compare();
        assertEquals(0, memory.size());
    }
}
