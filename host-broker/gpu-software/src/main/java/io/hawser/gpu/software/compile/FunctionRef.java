package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Function;

/** A function with the module whose names it uses. */
record FunctionRef(ModuleScope scope, Function function) {
    String name() {
        return function.name();
    }
}
