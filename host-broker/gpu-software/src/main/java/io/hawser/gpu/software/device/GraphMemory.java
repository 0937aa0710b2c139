package io.hawser.gpu.software.device;

import java.util.HashMap;
import java.util.Map;

/**
 * Memory of allocating nodes. A node's has its place for as long as the graph, or one made executable from it, may be
 * launched, so that its address is the same each time. Decoder's thread only.
 */
final class GraphMemory {
    /** What one node allocates. */
    static final class Block {
        final long address;
        final long bytes;
        /** The node's graph and executable graphs that can allocate it. */
        int holders;
        /** Whether a launch has allocated it, and nothing has freed it since. */
        private boolean isLive;

        private Block(long address, long bytes) {
            this.address = address;
            this.bytes = bytes;
        }

        boolean isLive() {
            return isLive;
        }

        /** Whether nothing can use it any more. */
        boolean isGone() {
            return holders == 0 && !isLive;
        }
    }

    private static final int USED = 0;
    private static final int RESERVED = 2;

    private final Map<Long, Block> blocks = new HashMap<>();
    /** By CUgraphMem_attribute: bytes in use and in place, each now and at most since the last reset. */
    private final long[] figures = new long[4];

    /** Adds memory that a node has been given; nothing holds it yet. */
    Block add(long address, long bytes) {
        Block block = new Block(address, bytes);
        blocks.put(address, block);
        count(RESERVED, bytes);
        return block;
    }

    /** What begins at an address, or null. */
    Block at(long address) {
        return blocks.get(address);
    }

    /** Notes that a launch allocates it. */
    void allocate(Block block) {
        if (!block.isLive) {
            block.isLive = true;
            count(USED, block.bytes);
        }
    }

    /** Notes that it has been freed. */
    void free(Block block) {
        if (block.isLive) {
            block.isLive = false;
            count(USED, -block.bytes);
        }
    }

    /** Forgets what nothing can use any more; whether it was there. */
    boolean remove(Block block) {
        if (!blocks.remove(block.address, block)) {
            return false;
        }
        count(RESERVED, -block.bytes);
        return true;
    }

    private void count(int figure, long bytes) {
        figures[figure] += bytes;
        figures[figure + 1] = Math.max(figures[figure + 1], figures[figure]);
    }

    /** A figure by its CUgraphMem_attribute. */
    long bytes(int attribute) {
        return figures[attribute];
    }

    /** Sets a highest value back to 0; false for what is none. */
    boolean reset(int attribute) {
        if (attribute != USED + 1 && attribute != RESERVED + 1) {
            return false;
        }
        figures[attribute] = 0;
        return true;
    }
}
