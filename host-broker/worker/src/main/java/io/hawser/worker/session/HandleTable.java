package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.netty.util.collection.LongObjectHashMap;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The guest's handles by kind. Guests number the handles of a kind upwards, so a number up to the highest that was seen
 * and not in the table was destroyed. Session thread only.
 */
public final class HandleTable {
    /** Objects of one kind in one session; each costs memory here and in the backend. */
    public static final int MAX_HANDLES = 1 << 20;

    private static final int KIND_SHIFT = 40;
    private static final long NUMBER_MASK = (1L << KIND_SHIFT) - 1;

    private final Map<HandleKind, LongObjectHashMap<Handle>> live = new EnumMap<>(HandleKind.class);
    private final long[] highest = new long[HandleKind.values().length];

    /** Makes an empty table. */
    public HandleTable() {
        for (HandleKind kind : HandleKind.values()) {
            live.put(kind, new LongObjectHashMap<>());
        }
    }

    /**
     * The id of a handle.
     *
     * @param kind its kind.
     * @param number its number, unsigned.
     * @return what travels.
     */
    public static long id(HandleKind kind, int number) {
        return (long) kind.number() << KIND_SHIFT | Integer.toUnsignedLong(number);
    }

    /**
     * Whether an id is one that this kind can have.
     *
     * @param kind what is wanted.
     * @param id what the guest sent.
     * @return false when no honest guest sends it.
     */
    public static boolean isOfKind(HandleKind kind, long id) {
        return id >>> KIND_SHIFT == kind.number() && (id & NUMBER_MASK) != 0;
    }

    /**
     * Finds a handle.
     *
     * @param kind what is wanted.
     * @param id what the guest sent.
     * @return the handle, or null when there is none.
     */
    public Handle find(HandleKind kind, long id) {
        return live.get(kind).get(id);
    }

    /**
     * Whether an id that is not in the table may have been there.
     *
     * @param kind what is wanted.
     * @param id what the guest sent.
     * @return true for a destroyed handle, false for one that never was.
     */
    public boolean wasCreated(HandleKind kind, long id) {
        return isOfKind(kind, id) && (id & NUMBER_MASK) <= highest[kind.ordinal()];
    }

    /**
     * Adds a handle.
     *
     * @param handle with an id of its kind.
     * @return false, with nothing changed, when its id is in use, not of its kind, or the kind has too many.
     */
    public boolean add(Handle handle) {
        LongObjectHashMap<Handle> ofKind = live.get(handle.kind());
        if (!isOfKind(handle.kind(), handle.id()) || ofKind.size() >= MAX_HANDLES || ofKind.containsKey(handle.id())) {
            return false;
        }
        ofKind.put(handle.id(), handle);
        int at = handle.kind().ordinal();
        highest[at] = Math.max(highest[at], handle.id() & NUMBER_MASK);
        return true;
    }

    /**
     * Removes a handle, and those that it owns: with a context go its streams, events, modules and arrays, with a
     * module its functions, with a mipmapped array its levels.
     *
     * @param handle in the table.
     * @return all that went, the given one first.
     */
    public List<Handle> remove(Handle handle) {
        List<Handle> gone = new ArrayList<>();
        live.get(handle.kind()).remove(handle.id());
        gone.add(handle);
        for (HandleKind kind : ownedBy(handle.kind())) {
            for (Handle owned : List.copyOf(live.get(kind).values())) {
                if (owned.owner() == handle) {
                    gone.addAll(remove(owned));
                }
            }
        }
        return gone;
    }

    private static List<HandleKind> ownedBy(HandleKind kind) {
        return switch (kind) {
            case CONTEXT -> List.of(HandleKind.MODULE, HandleKind.STREAM, HandleKind.EVENT, HandleKind.ARRAY,
                HandleKind.MIPMAPPED_ARRAY);
            case MODULE -> List.of(HandleKind.FUNCTION);
            case MIPMAPPED_ARRAY -> List.of(HandleKind.ARRAY);
            default -> List.of();
        };
    }

    /**
     * The handles of a kind.
     *
     * @param kind which.
     * @return a copy.
     */
    public List<Handle> all(HandleKind kind) {
        return List.copyOf(live.get(kind).values());
    }

    /**
     * Number of handles of all kinds.
     *
     * @return live and failed ones.
     */
    public int size() {
        return live.values().stream().mapToInt(LongObjectHashMap::size).sum();
    }
}
