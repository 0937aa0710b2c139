package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.ptx.Variable;

/** What generated code needs to know of the image that it is part of. */
interface Placement {
    /** Address of a global or const variable, or of a function. */
    long address(ModuleScope scope, String name);

    /** Offset of a shared variable in the kernel's shared memory. */
    long shared(ModuleScope scope, Variable variable);

    /** Puts a special register's value on the stack. */
    void special(Gen g, String name);

    /** Calls a translated function: its arguments are on the stack. */
    void invoke(Gen g, FunctionRef function);
}
