package io.hawser.gpu.software.device;

import java.util.HashMap;
import java.util.Map;

/** Device code that belongs to no context: each context that uses it loads its own module. Decoder's thread only. */
final class Library {
    final byte[] image;
    /** Handles of the modules by context. */
    final Map<Context, Long> instances = new HashMap<>();

    Library(byte[] image) {
        this.image = image;
    }
}
