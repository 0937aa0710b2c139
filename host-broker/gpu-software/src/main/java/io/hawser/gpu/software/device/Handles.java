package io.hawser.gpu.software.device;

import java.util.HashMap;
import java.util.Map;

/** The backend's handles: numbers that are never reused. Decoder's thread only. */
final class Handles {
    // Above CUDA's special streams (1 legacy, 2 per thread), so that no handle equals one of them.
    private static final long FIRST = 16;

    private final Map<Long, Object> objects = new HashMap<>();
    private long next = FIRST;

    /** The number that the next {@link #add} will give. */
    long peek() {
        return next;
    }

    long add(Object object) {
        objects.put(next, object);
        return next++;
    }

    /** The object of that type, or null. */
    <T> T get(long handle, Class<T> type) {
        Object object = objects.get(handle);
        return type.isInstance(object) ? type.cast(object) : null;
    }

    void remove(long handle) {
        objects.remove(handle);
    }

    int size() {
        return objects.size();
    }
}
