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
