package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a library has in contexts: each has its own variables, which go with it, and each costs. Session thread only.
 */
public final class LibraryVariables {
    private record Variable(Handle context, long address) { }

    private final List<Variable> variables = new ArrayList<>();
    private final Map<Handle, MemoryQuota.Charge> charges = new IdentityHashMap<>();
    private final long bytes;

    /**
     * Has nothing in any context.
     *
     * @param bytes that it takes in each that uses it.
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
     * Whether a context's part has been claimed.
     *
     * @param context a live one.
     * @return true after {@link #keepCharge}.
     */
    public boolean isCharged(Handle context) {
        return charges.containsKey(context);
    }

    /**
     * Keeps what a context's part costs.
     *
     * @param context that uses it.
     * @param charge its cost.
     */
    public void keepCharge(Handle context, MemoryQuota.Charge charge) {
        charges.put(context, charge);
    }

    /**
     * What it costs in all contexts, to be given back once it is unloaded.
     *
     * @return charges that are kept here no more.
     */
    public List<MemoryQuota.Charge> takeCharges() {
        List<MemoryQuota.Charge> taken = List.copyOf(charges.values());
        charges.clear();
        return taken;
    }

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
