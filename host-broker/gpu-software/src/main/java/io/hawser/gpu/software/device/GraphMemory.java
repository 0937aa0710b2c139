package io.hawser.gpu.software.device;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Memory of allocating nodes. A node's memory keeps its address while its graph or an executable graph of it exists:
 * each launch allocates at the same address. Nodes of one graph whose lifetimes do not overlap share places, as with
 * NVIDIA's driver. Decoder's thread only.
 */
final class GraphMemory {
    private static final long GRANULE_BYTES = 512; // alignment of a driver's allocations

    /** Device memory that nodes of one graph share. */
    static final class Place {
        final long address;
        final long bytes;
        private final Graph graph;
        private final Set<Graph.Node> nodes = new HashSet<>();
        private int blocks;

        private Place(Graph graph, long address, long bytes) {
            this.graph = graph;
            this.address = address;
            this.bytes = bytes;
        }
    }

    /** The memory of one node. */
    static final class Block {
        final Place place;
        final long address;
        final long bytes;
        /** How many of these exist: the node's graph, and executable graphs that can allocate the memory. */
        int holders;
        /** Whether a launch has allocated it and no free has followed. */
        private boolean isLive;
        private boolean isRemoved;

        private Block(Place place, long address, long bytes) {
            this.place = place;
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

        private boolean meets(long other, long otherBytes) {
            return address < other + otherBytes && other < address + bytes;
        }
    }

    private static final int USED = 0;
    private static final int RESERVED = 2;

    private final Map<Long, Deque<Block>> blocks = new HashMap<>(); // by address, the newest first
    /**
     * By CUgraphMem_attribute: bytes in use and reserved, each the current value and the highest since the last reset.
     */
    private final long[] figures = new long[4];

    /** Adds device memory of a node; no graph holds it yet. */
    Block add(Graph.Node node, long address, long bytes) {
        count(RESERVED, bytes);
        return take(node, new Place(node.graph, address, bytes), address, bytes);
    }

    private Block take(Graph.Node node, Place place, long address, long bytes) {
        Block block = new Block(place, address, bytes);
        place.blocks++;
        place.nodes.add(node);
        blocks.computeIfAbsent(address, key -> new ArrayDeque<>()).addFirst(block);
        return block;
    }

    /** Gives a node the memory that earlier nodes of its graph have freed; null when none fits. */
    Block reuse(Graph.Node node, long bytes) {
        Set<Block> freed = new HashSet<>();
        Set<Place> places = new HashSet<>();
        for (Graph.Node before : ancestors(node)) {
            if (before.frees != null && before.frees.place.graph == node.graph) {
                freed.add(before.frees);
                places.add(before.frees.place);
            }
        }
        for (Place place : places) {
            for (long address = place.address; address != 0 && address + bytes <= place.address + place.bytes;) {
                Block obstacle = obstacle(place, address, bytes, freed);
                if (obstacle == null) {
                    return take(node, place, address, bytes);
                }
                address = obstacle.address + (obstacle.bytes + GRANULE_BYTES - 1) / GRANULE_BYTES * GRANULE_BYTES;
            }
        }
        return null;
    }

    /** Releases a removed node's claim, so that other nodes can use its memory. */
    void forget(Graph.Node node) {
        node.memory.place.nodes.remove(node);
    }

    private static Set<Graph.Node> ancestors(Graph.Node node) {
        Set<Graph.Node> found = new HashSet<>();
        Deque<Graph.Node> open = new ArrayDeque<>(node.before);
        while (!open.isEmpty()) {
            Graph.Node next = open.poll();
            if (found.add(next)) {
                open.addAll(next.before);
            }
        }
        return found;
    }

    /** A block in the range that may be in use at the same time; null for none. */
    private static Block obstacle(Place place, long address, long bytes, Set<Block> freed) {
        for (Graph.Node other : place.nodes) {
            if (!freed.contains(other.memory) && other.memory.meets(address, bytes)) {
                return other.memory;
            }
        }
        return null;
    }

    /** The newest block that begins at an address, or null. */
    Block at(long address) {
        Deque<Block> here = blocks.get(address);
        return here == null ? null : here.getFirst();
    }

    /** Marks a block as allocated by a launch. */
    void allocate(Block block) {
        if (!block.isLive) {
            block.isLive = true;
            count(USED, block.bytes);
        }
    }

    /** Marks a block as freed. */
    void free(Block block) {
        if (block.isLive) {
            block.isLive = false;
            count(USED, -block.bytes);
        }
    }

    /** Removes a block that nothing can use any more; returns whether its place has become free. */
    boolean remove(Block block) {
        if (block.isRemoved) {
            return false;
        }
        block.isRemoved = true;
        Deque<Block> here = blocks.get(block.address);
        here.remove(block);
        if (here.isEmpty()) {
            blocks.remove(block.address);
        }
        block.place.blocks--;
        if (block.place.blocks == 0) {
            count(RESERVED, -block.place.bytes);
        }
        return block.place.blocks == 0;
    }

    private void count(int figure, long bytes) {
        figures[figure] += bytes;
        figures[figure + 1] = Math.max(figures[figure + 1], figures[figure]);
    }

    /** A figure by its CUgraphMem_attribute. */
    long bytes(int attribute) {
        return figures[attribute];
    }

    /** Resets a highest value to 0; false when the attribute is not a highest value. */
    boolean reset(int attribute) {
        if (attribute != USED + 1 && attribute != RESERVED + 1) {
            return false;
        }
        figures[attribute] = 0;
        return true;
    }
}
