package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * The variables and charges of a library in each context that uses it. They end with the context. Session thread only.
 */
public final class LibraryVariables {
    private record Variable(Handle context, long address) {}

    private final List<Variable> variables = new ArrayList<>();
    private final Map<Handle, MemoryQuota.Charge> charges = new IdentityHashMap<>();
    private final long bytes;

    /**
     * Starts without contexts.
     *
     * @param bytes device memory that the library takes in each context that uses it.
     */
    public LibraryVariables(long bytes) {
        this.bytes = bytes;
    }

    /**
     * Device memory that it takes in each context.
     *
     * @return bytes.
     */
    public long bytes() {
        return bytes;
    }

    /**
     * Whether the memory in a context has been claimed.
     *
     * @param context a live one.
     * @return true after {@link #keepCharge}.
     */
    public boolean isCharged(Handle context) {
        return charges.containsKey(context);
    }

    /**
     * Keeps the charge for a context.
     *
     * @param context the context.
     * @param charge the charge.
     */
    public void keepCharge(Handle context, MemoryQuota.Charge charge) {
        charges.put(context, charge);
    }

    /**
     * Takes the charges for all contexts; the caller gives them back once the library is unloaded.
     *
     * @return the charges.
     */
    public List<MemoryQuota.Charge> takeCharges() {
        List<MemoryQuota.Charge> taken = List.copyOf(charges.values());
        charges.clear();
        return taken;
    }

    /**
     * Adds a variable.
     *
     * @param context its context.
     * @param address its first byte, which the table of memory has with the library's handle as its owner.
     */
    public void add(Handle context, long address) {
        variables.add(new Variable(context, address));
    }

    /** Removes the variables of a context that has ended, and gives its charge back. */
    void forget(Handle context, AllocationMap allocations) {
        MemoryQuota.Charge charge = charges.remove(context);
        if (charge != null) {
            charge.giveBack();
        }
        variables.removeIf(variable -> {
            if (variable.context == context) {
                allocations.removeVariable(variable.address);
            }
            return variable.context == context;
        });
    }
}
