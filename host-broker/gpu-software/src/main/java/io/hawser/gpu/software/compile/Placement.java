package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Variable;

/** Gives generated code the addresses and calls of the image that contains it. */
interface Placement {
    /** Address of a global or const variable, or of a function. */
    long address(ModuleScope scope, String name);

    /** Offset of a shared variable in the kernel's shared memory. */
    long shared(ModuleScope scope, Variable variable);

    /** Pushes a special register's value. */
    void special(Gen g, String name);

    /** Calls a translated function whose arguments are on the stack. */
    void invoke(Gen g, FunctionRef function);
}
