package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.model.SizeExpression;

/**
 * Writes sizes in C, in {@code uint64_t}, with the operations of {@code hws_wire.h} that saturate at the largest value.
 */
final class CSizes {
    private CSizes() {
    }

    static String emit(SizeExpression size) {
        return size.emit(name -> "(uint64_t) " + name.replace(".", "->"), "hws_size_", "u");
    }
}
