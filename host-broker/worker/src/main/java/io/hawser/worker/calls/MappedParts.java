package io.hawser.worker.calls;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The parts of a session's arrays that memory is mapped onto. Memory that the guest has released lives, and counts
 * against the quota, while a part needs it. Session thread.
 */
final class MappedParts {
    /** Parts of all arrays; a guest can cut parts into many. */
    static final int MAX_PARTS = 1 << 16;
    /** A removal turns one part into at most six. */
    private static final int MOST_MORE = 6;

    private record Mapped(ArrayPart part, Allocation memory) {}

    private final Map<Object, List<Mapped>> byArray = new HashMap<>();
    private int count;

    /** Whether a further change stays within the limit. */
    boolean hasRoom() {
        return count <= MAX_PARTS - MOST_MORE;
    }

    /**
     * Enters a part; it replaces what it overlaps.
     *
     * @param array identifies the array.
     *
     * @return releases of memory that nothing needs any more; the caller runs them when no work uses it.
     */
    List<Runnable> map(Object array, ArrayPart part, Allocation memory) {
        memory.addArrayPart(); // first: the memory may be the same
        List<Runnable> unused = unmap(array, part);
        byArray.computeIfAbsent(array, key -> new ArrayList<>()).add(new Mapped(part, memory));
        count++;
        return unused;
    }

    /** Removes a part; see {@link #map}. */
    List<Runnable> unmap(Object array, ArrayPart part) {
        List<Runnable> unused = new ArrayList<>();
        List<Mapped> rest = new ArrayList<>();
        for (Mapped mapped : byArray.getOrDefault(array, List.of())) {
            if (!mapped.part.overlaps(part)) {
                rest.add(mapped);
                continue;
            }
            for (ArrayPart left : mapped.part.without(part)) {
                mapped.memory.addArrayPart();
                rest.add(new Mapped(left, mapped.memory));
            }
            end(mapped, unused);
        }
        replace(array, rest);
        return unused;
    }

    /** Removes all parts of an array, which has ended. */
    void forget(Object array) {
        List<Runnable> unused = new ArrayList<>();
        byArray.getOrDefault(array, List.of()).forEach(mapped -> end(mapped, unused));
        replace(array, List.of());
        unused.forEach(Runnable::run);
    }

    private void replace(Object array, List<Mapped> parts) {
        List<Mapped> before = parts.isEmpty() ? byArray.remove(array) : byArray.put(array, parts);
        count += parts.size() - (before == null ? 0 : before.size());
    }

    private static void end(Mapped mapped, List<Runnable> unused) {
        Runnable release = mapped.memory.removeArrayPart();
        if (release != null) {
            unused.add(release);
        }
    }

    int count() {
        return count;
    }
}
