package io.hawser.worker.calls;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Objects by the bytes that they were made from; the one that was not used for longest goes first. A hit allocates
 * nothing. Session thread.
 *
 * @param <V> the objects.
 */
final class ContentCache<V> {
    private final Key wanted;
    private final Map<Key, V> entries;
    private final Consumer<V> dropped;

    /** Bytes, compared by value. Their number is a multiple of 8. */
    private static final class Key {
        private final MemorySegment bytes;
        private int hash;

        Key(long size) {
            bytes = Arena.ofAuto().allocate(size, Long.BYTES);
        }

        void hash() {
            long sum = 0;
            for (long i = 0; i < bytes.byteSize(); i += Long.BYTES) {
                sum = (sum ^ bytes.get(ValueLayout.JAVA_LONG, i)) * 0x9e3779b97f4a7c15L;
                sum ^= sum >>> 29;
            }
            hash = (int) (sum ^ sum >>> 32);
        }

        Key copy() {
            Key key = new Key(bytes.byteSize());
            key.bytes.copyFrom(bytes);
            key.hash = hash;
            return key;
        }

        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Key key && key.hash == hash && key.bytes.mismatch(bytes) < 0;
        }
    }

    /**
     * Makes an empty cache.
     *
     * @param keyBytes size of a content, a multiple of 8.
     * @param most number of objects; a guest chooses their contents.
     * @param dropped receives an object that goes.
     */
    ContentCache(long keyBytes, int most, Consumer<V> dropped) {
        wanted = new Key(keyBytes);
        this.dropped = dropped;
        entries = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Key, V> eldest) {
                if (size() <= most) {
                    return false;
                }
                dropped.accept(eldest.getValue());
                return true;
            }
        };
    }

    /** The content that the next call looks for; the caller fills all of it. */
    MemorySegment wanted() {
        return wanted.bytes;
    }

    /** The object with the wanted content; null for none. */
    V find() {
        wanted.hash();
        return entries.get(wanted);
    }

    /** The object with the wanted content, made if there is none. */
    V findOrMake(Supplier<V> maker) {
        V found = find();
        if (found == null) {
            found = maker.get();
            entries.put(wanted.copy(), found);
        }
        return found;
    }

    /** Drops the objects for which a condition holds. */
    void dropIf(Predicate<V> condition) {
        entries.values().removeIf(value -> {
            boolean goes = condition.test(value);
            if (goes) {
                dropped.accept(value);
            }
            return goes;
        });
    }

    /** Number of objects. */
    int size() {
        return entries.size();
    }
}
