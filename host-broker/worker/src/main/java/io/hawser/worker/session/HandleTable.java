package io.hawser.worker.session;

import io.hawser.cuda.generated.HandleKind;
import io.netty.util.collection.LongObjectHashMap;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The guest's handles by kind. Guests number the handles of a kind upwards. So a number that is not in the table, but
 * not above the highest seen, belongs to a destroyed handle. Session thread only.
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
     * @return the id on the wire.
     */
    public static long id(HandleKind kind, int number) {
        return (long) kind.number() << KIND_SHIFT | Integer.toUnsignedLong(number);
    }

    /**
     * Whether an id can belong to a kind.
     *
     * @param kind the expected kind.
     * @param id id from the guest.
     * @return false when no correct guest sends it.
     */
    public static boolean isOfKind(HandleKind kind, long id) {
        return id >>> KIND_SHIFT == kind.number() && (id & NUMBER_MASK) != 0;
    }

    /**
     * Finds a handle.
     *
     * @param kind the expected kind.
     * @param id id from the guest.
     * @return the handle, or null when there is none.
     */
    public Handle find(HandleKind kind, long id) {
        return live.get(kind).get(id);
    }

    /**
     * Whether an id that is not in the table may have been in it before.
     *
     * @param kind the expected kind.
     * @param id id from the guest.
     * @return true for a destroyed handle, false for one that never existed.
     */
    public boolean wasCreated(HandleKind kind, long id) {
        return isOfKind(kind, id) && (id & NUMBER_MASK) <= highest[kind.ordinal()];
    }

    /**
     * Adds a handle.
     *
     * @param handle a handle with an id of its kind.
     * @return false, with nothing changed, when its id is in use or not of its kind, or the kind has too many handles.
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
     * Removes a handle and the handles that it owns. A context owns its streams, events, modules, arrays and green
     * contexts; a module its functions; a mipmapped array its levels.
     *
     * @param handle a handle in the table.
     * @return all removed handles, the given one first.
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
                HandleKind.MIPMAPPED_ARRAY, HandleKind.CUBLAS, HandleKind.CUBLASLT,
                HandleKind.CUFFT, HandleKind.CUDNN, HandleKind.CUSOLVER, HandleKind.CUSOLVER_SP,
                HandleKind.CUSPARSE, HandleKind.CURAND, HandleKind.CUSPARSELT,
                HandleKind.CONTEXT);
            case MODULE -> List.of(HandleKind.FUNCTION);
            case MIPMAPPED_ARRAY -> List.of(HandleKind.ARRAY);
            default -> List.of();
        };
    }

    /**
     * The handles of a kind.
     *
     * @param kind the kind.
     * @return a copy.
     */
    public List<Handle> all(HandleKind kind) {
        return List.copyOf(live.get(kind).values());
    }

    /** The highest number of each kind that was ever used, by the kinds' order. */
    long[] highest() {
        return highest.clone();
    }

    /** Sets what {@link #highest} has returned at another worker. */
    void setHighest(long[] numbers) {
        for (int i = 0; i < highest.length; i++) {
            highest[i] = Math.max(highest[i], numbers[i] & NUMBER_MASK);
        }
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
