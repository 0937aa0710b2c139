package io.hawser.gpu.software.device;

import java.util.HashMap;
import java.util.Map;

/** Device code that belongs to no context: each context that uses it loads its own module. Decoder's thread only. */
final class Library {
    final byte[] image;
    /** Handles of the modules by context. */
    final Map<Context, Long> instances = new HashMap<>();
    /** The managed variables of all contexts; null until the first module is loaded. */
    ManagedPlaces managed;

    Library(byte[] image) {
        this.image = image;
    }
}
