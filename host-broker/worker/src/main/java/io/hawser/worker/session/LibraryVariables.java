package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.List;

/** Where a library's variables lie: each context has its own, which go with it. Session thread only. */
public final class LibraryVariables {
    private record Variable(Handle context, long address) { }

    private final List<Variable> variables = new ArrayList<>();

    /**
     * Notes a variable.
     *
     * @param context in which it is.
     * @param address its first byte, in the table of memory with the library's handle as its owner.
     */
    public void add(Handle context, long address) {
        variables.add(new Variable(context, address));
    }

    /** Takes those of a context that has ended out of the table of memory. */
    void forget(Handle context, AllocationMap allocations) {
        variables.removeIf(variable -> {
            if (variable.context == context) {
                allocations.removeVariable(variable.address);
            }
            return variable.context == context;
        });
    }
}
