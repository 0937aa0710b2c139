package io.hawser.worker.session;

import java.util.HashMap;
import java.util.Map;

/**
 * Memory of allocating nodes. A node's address stays in the table of allocations, and counts, from the node's making
 * until the graph and what was made executable from it are gone, and longer when a launch has allocated it and nothing
 * has freed it. Session thread only.
 */
public final class GraphMemory {
    /** What one node allocates. */
    public static final class Block {
        private final long address;
        private final MemoryQuota.Charge charge;
        private int holders = 1;
        private boolean isLive;

        private Block(long address, MemoryQuota.Charge charge) {
            this.address = address;
            this.charge = charge;
        }

        /** Where it begins. */
        public long address() {
            return address;
        }
    }

    private final AllocationMap allocations;
    private final Map<Long, Block> blocks = new HashMap<>();

    /**
     * Starts with nothing.
     *
     * @param allocations the session's table.
     */
    GraphMemory(AllocationMap allocations) {
        this.allocations = allocations;
    }

    /**
     * Adds what a node allocates, which holds it.
     *
     * @param address from the backend.
     * @param bytes its length.
     * @param context that it goes with.
     * @param charge what it costs of the quota.
     * @return null when the address is in use.
     */
    public Block add(long address, long bytes, Handle context, MemoryQuota.Charge charge) {
        if (!allocations.add(address, bytes, context, charge)) {
            return null;
        }
        Block block = new Block(address, charge);
        blocks.put(address, block);
        return block;
    }

    /**
     * What begins at an address.
     *
     * @param address of the device.
     * @return null when no allocating node's memory does.
     */
    public Block at(long address) {
        return blocks.get(address);
    }

    /** An executable graph may allocate it, too. */
    public void hold(Block block) {
        block.holders++;
    }

    /** A node or an executable graph is gone. */
    public void release(Block block) {
        block.holders--;
        settle(block);
    }

    /** A launch allocates it. */
    public void allocated(Block block) {
        block.isLive = true;
    }

    /** It has been freed, by a node or by the guest. */
    public void freed(Block block) {
        block.isLive = false;
        settle(block);
    }

    private void settle(Block block) {
        if (block.holders == 0 && !block.isLive) {
            blocks.remove(block.address);
            allocations.remove(block.address);
            block.charge.giveBack();
        }
    }
}
