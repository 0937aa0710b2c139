package io.hawser.gpu.software.device;

import java.util.HashMap;
import java.util.Map;

/** Device code that belongs to no context: each that uses it gets a module of its own. Decoder's thread only. */
final class Library {
    final byte[] image;
    /** Handles of the modules. */
    final Map<Context, Long> instances = new HashMap<>();

    Library(byte[] image) {
        this.image = image;
    }
}
