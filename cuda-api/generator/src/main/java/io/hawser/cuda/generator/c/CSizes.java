package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.model.SizeExpression;

/**
 * Writes sizes in C, in {@code uint64_t}, with the operations of {@code hws_wire.h} that saturate at the largest value.
 */
final class CSizes {
    private CSizes() {
    }

    /** In a stub, where the content of a descriptor has the descriptor's name with the prefix hws_. */
    static String emitInStub(SizeExpression size) {
        return size.emit(name -> "(uint64_t) " + (name.contains(".") ? "hws_" + name.replace(".", "->") : name),
            "hws_size_", "u");
    }

    static String emit(SizeExpression size) {
        return size.emit(name -> "(uint64_t) " + name.replace(".", "->"), "hws_size_", "u");
    }
}
