package io.hawser.gpu.nvidia;

import java.util.HashSet;
import java.util.Set;
import java.util.function.LongConsumer;

/**
 * The objects that a session has created in a primary context. A reset by the guest frees these objects. The context
 * itself stays, with the worker's own memory and events, because creating one takes a third of a second. Session thread
 * only.
 */
final class Belongings {
    final Set<Long> memory;
    final Set<Long> streams = new HashSet<>();
    final Set<Long> events;
    final Set<Long> modules;
    final Set<Long> arrays;
    final Set<Long> mipmappedArrays;
    final Set<Long> textures;
    final Set<Long> surfaces;

    final SpareStreams spares; // null: a destroyed stream is not kept
    private final Belongings primary; // of a green context; else null
    private int greenContexts; // of a primary context
    private int lateStreams; // streams destroyed while they had work
    private volatile int lateStreamsReached; // of these streams, so many have finished their work

    Belongings(SpareStreams spares) {
        this.spares = spares;
        primary = null;
        memory = new HashSet<>();
        events = new HashSet<>();
        modules = new HashSet<>();
        arrays = new HashSet<>();
        mipmappedArrays = new HashSet<>();
        textures = new HashSet<>();
        surfaces = new HashSet<>();
    }

    /** Makes the record of a green context, which has streams of its own. All else belongs to its primary context. */
    Belongings(Belongings primary) {
        this.primary = primary;
        spares = null;
        memory = primary.memory;
        events = primary.events;
        modules = primary.modules;
        arrays = primary.arrays;
        mipmappedArrays = primary.mipmappedArrays;
        textures = primary.textures;
        surfaces = primary.surfaces;
        primary.greenContexts++;
    }

    /** Destroys the streams of a green context that is about to end. */
    void endGreen(LongConsumer destroyer) {
        Set.copyOf(streams).forEach(destroyer::accept);
        primary.greenContexts--;
    }

    /** Counts a stream that was destroyed while it had work. Only the context can tell when that work ends. */
    void addLateStream() {
        lateStreams++;
    }

    int lateStreams() {
        return lateStreams;
    }

    /** Records that the first {@code count} of these streams have finished their work. Any thread. */
    void markLateStreamsReached(int count) {
        lateStreamsReached = Math.max(lateStreamsReached, count); // only one thread at a time runs actions of markers
    }

    /**
     * The streams that hold all of the session's work in this context, including its default stream. All streams for a
     * guest's work are created through {@link NvidiaDriver}.
     *
     * @return null when there are more than the limit, a destroyed stream still has work, or green contexts have more.
     */
    long[] streams(int limit) {
        if (streams.size() >= limit || greenContexts > 0 || lateStreams != lateStreamsReached
            || spares != null && !spares.areIdle()) {
            return null;
        }
        long[] all = new long[streams.size() + 1]; // the first is 0, the default stream
        int count = 1;
        for (long stream : streams) {
            all[count++] = stream;
        }
        return all;
    }

    /** Frees all objects; the context must be current and have no work. */
    void free(NvidiaDriver driver, Images images) {
        drain(streams, driver::destroyStream);
        drain(events, driver::destroyEvent);
        drain(modules, images::unload);
        drain(textures, driver::destroyTexture); // before the arrays that they read
        drain(surfaces, driver::destroySurface);
        drain(arrays, driver::destroyArray);
        drain(mipmappedArrays, driver::destroyMipmappedArray);
        drain(memory, driver::freeMemory);
    }

    private static void drain(Set<Long> handles, LongConsumer free) {
        handles.forEach(free::accept);
        handles.clear();
    }
}
