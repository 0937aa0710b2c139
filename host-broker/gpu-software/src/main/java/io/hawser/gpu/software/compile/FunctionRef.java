package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;

/** A function and the module that resolves its names. */
record FunctionRef(ModuleScope scope, Function function) {
    String name() {
        return function.name();
    }
}
