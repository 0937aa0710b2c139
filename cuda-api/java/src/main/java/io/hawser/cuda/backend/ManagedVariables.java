package io.hawser.cuda.backend;

import java.util.List;

/** The {@code __managed__} variables of modules, which the guest's host code uses at the same addresses. */
public interface ManagedVariables {
    /**
     * A variable.
     *
     * @param address its first byte.
     * @param bytes its length, over 0.
     */
    record Variable(long address, long bytes) {}

    /**
     * Finds the variables of a module or library in the current context.
     *
     * @param module a live one.
     * @return its variables, always in the same order; a library's have the same places in all contexts.
     */
    List<Variable> of(long module);

    /**
     * Makes later loads in the current context place variables elsewhere, because the guest's process uses the
     * addresses so far.
     *
     * @param times how often the guest has loaded the next image in vain: 1 or more, any number.
     */
    default void move(int times) {
    }
}
