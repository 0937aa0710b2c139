package io.hawser.broker.ipc;

import io.hawser.broker.pool.WorkerMessage;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Device memory that sessions let others of the same vGPU open, by random names: who has a name has been given it. What
 * is behind one is a driver's handle, as its worker said it; it is passed on and never looked at here. Event loop only.
 */
public final class SharedMemory {
    /** Names of one session; an honest worker asks for no more. */
    public static final int MAX_NAMES = 1024;

    private record Entry(long session, WorkerMessage.Share share) { }

    private final Map<String, Map<String, Entry>> byVgpu = new HashMap<>();
    private final Map<Long, Integer> counts = new HashMap<>(); // of names, by session

    /**
     * Keeps a name until its session withdraws it or ends.
     *
     * @return false when the name is in use in the vGPU, or the session has too many.
     */
    public boolean share(long session, String vgpu, WorkerMessage.Share share) {
        Map<String, Entry> names = byVgpu.computeIfAbsent(vgpu, name -> new HashMap<>());
        int count = counts.getOrDefault(session, 0);
        if (count >= MAX_NAMES || names.putIfAbsent(share.name(), new Entry(session, share)) != null) {
            return false;
        }
        counts.put(session, count + 1);
        return true;
    }

    /** Forgets a name, if it is this session's. */
    public void unshare(long session, String vgpu, String name) {
        Map<String, Entry> names = byVgpu.getOrDefault(vgpu, Map.of());
        Entry entry = names.get(name);
        if (entry != null && entry.session == session) {
            names.remove(name);
            counts.merge(session, -1, Integer::sum);
        }
    }

    /** What a session of the vGPU has shared by this name. */
    public Optional<WorkerMessage.Share> find(String vgpu, String name) {
        return Optional.ofNullable(byVgpu.getOrDefault(vgpu, Map.of()).get(name)).map(Entry::share);
    }

    /** A session is over; its names go too. */
    public void gone(long session, String vgpu) {
        if (counts.remove(session) != null) {
            byVgpu.get(vgpu).values().removeIf(entry -> entry.session == session);
        }
    }

    /** How many names are kept, of all vGPUs. */
    public int size() {
        return byVgpu.values().stream().mapToInt(Map::size).sum();
    }
}
