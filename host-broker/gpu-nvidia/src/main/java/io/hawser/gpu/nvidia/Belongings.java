package io.hawser.gpu.nvidia;

import java.util.HashSet;
import java.util.Set;
import java.util.function.LongConsumer;

/**
 * What a session has made in a primary context. The context itself stays, with the worker's own memory and events in
 * it, when the guest resets it: making one takes a third of a second. Session thread only.
 */
final class Belongings {
    final Set<Long> memory = new HashSet<>();
    final Set<Long> streams = new HashSet<>();
    final Set<Long> events = new HashSet<>();
    final Set<Long> modules = new HashSet<>();
    final Set<Long> arrays = new HashSet<>();
    final Set<Long> mipmappedArrays = new HashSet<>();
    final Set<Long> textures = new HashSet<>();
    final Set<Long> surfaces = new HashSet<>();

    private int lateStreams; // destroyed with work in them
    private volatile int lateStreamsReached; // so many of them have no work any more

    /** A stream has been destroyed with work in it, of which only the context knows when it ends. */
    void hasLateStream() {
        lateStreams++;
    }

    int lateStreams() {
        return lateStreams;
    }

    /** Of the streams destroyed with work in them, so many, the first, have no work any more. Any thread. */
    void lateStreamsReached(int count) {
        lateStreamsReached = Math.max(lateStreamsReached, count); // one thread at a time runs actions of markers
    }

    /**
     * The streams in which all the work of the session in this context is, its default stream among them. All that a
     * guest's work goes to are made through {@link NvidiaDriver}.
     *
     * @return null when there are more than the limit, or work is where none of them knows of it.
     */
    long[] streams(int limit) {
        if (streams.size() >= limit || lateStreams != lateStreamsReached) {
            return null;
        }
        long[] all = new long[streams.size() + 1]; // the first is 0, the default stream
        int count = 1;
        for (long stream : streams) {
            all[count++] = stream;
        }
        return all;
    }

    /** Gives everything back; the context must be current and without work. */
    void free(NvidiaDriver driver, Images images) {
        drain(streams, driver::destroyStream);
        drain(events, driver::destroyEvent);
        drain(modules, images::unload);
        drain(textures, driver::destroyTexture); // before what they read
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
