package io.hawser.worker.session;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Memory of graph nodes that allocate. When the lifetimes of two nodes' memory in one graph do not overlap, drivers may
 * give both the same addresses, in whole or in part. A node's memory stays recorded until its graph and all executable
 * graphs made from it are gone and no launch's allocation is left unfreed. Memory that several nodes share is one range
 * of the session's table, and is charged once. Session thread only.
 */
public final class GraphMemory {
    /** The memory of one node. */
    public static final class Block {
        private final Span span;
        private final Handle context;
        private int holders = 1;
        private boolean isLive;
        private boolean isGone;

        private Block(Span span, Handle context) {
            this.span = span;
            this.context = context;
        }

        /** Its first address. */
        public long address() {
            return span.start;
        }

        /** Its context. */
        public Handle context() {
            return context;
        }
    }

    /** A range of addresses; the end is exclusive. */
    private record Span(long start, long end) implements Comparable<Span> {
        @Override
        public int compareTo(Span other) {
            int first = Long.compareUnsigned(start, other.start);
            return first != 0 ? first : Long.compareUnsigned(end, other.end);
        }

        boolean overlaps(Span other) {
            return Long.compareUnsigned(start, other.end) < 0 && Long.compareUnsigned(other.start, end) < 0;
        }

        Span with(Span other) {
            return new Span(Long.compareUnsigned(start, other.start) < 0 ? start : other.start,
                Long.compareUnsigned(end, other.end) > 0 ? end : other.end);
        }

        long bytes() {
            return end - start;
        }
    }

    /** Blocks that overlap, directly or through others. They form one range of the session's table. */
    private static final class Extent {
        final Span span;
        final Handle context;
        final MemoryQuota.Charge charge;
        final TreeMap<Span, Integer> blocks = new TreeMap<>(); // number of blocks for each span

        Extent(Span span, Handle context, MemoryQuota.Charge charge) {
            this.span = span;
            this.context = context;
            this.charge = charge;
        }
    }

    private final AllocationMap allocations;
    private final TreeMap<Long, Extent> extents = new TreeMap<>(Comparator.comparing(a -> a, Long::compareUnsigned));
    private final Map<Long, LinkedHashSet<Block>> blocks = new HashMap<>(); // by first address, the newest last

    /**
     * Starts empty.
     *
     * @param allocations the session's table.
     */
    GraphMemory(AllocationMap allocations) {
        this.allocations = allocations;
    }

    private List<Extent> overlapping(Span span) {
        List<Extent> found = new ArrayList<>();
        Map.Entry<Long, Extent> before = extents.lowerEntry(span.start);
        if (before != null && before.getValue().span.overlaps(span)) {
            found.add(before.getValue());
        }
        found.addAll(extents.subMap(span.start, span.end).values());
        return found;
    }

    /**
     * The part of some memory that no recorded node has.
     *
     * @param address address from the backend.
     * @param bytes its length.
     * @return bytes that it would add to the memory of all nodes.
     */
    public long newBytes(long address, long bytes) {
        Span span = new Span(address, address + bytes);
        Span merged = span;
        long known = 0;
        for (Extent extent : overlapping(span)) {
            merged = merged.with(extent.span);
            known += extent.span.bytes();
        }
        return merged.bytes() - known;
    }

    /**
     * Adds the memory of a node, which holds it.
     *
     * @param address address from the backend.
     * @param bytes its length.
     * @param context its context.
     * @param charge a charge of at least {@link #newBytes}; this method gives the excess back.
     * @return null, with nothing changed, when it overlaps memory of another kind or context.
     */
    public Block add(long address, long bytes, Handle context, MemoryQuota.Charge charge) {
        Span span = new Span(address, address + bytes);
        List<Extent> others = overlapping(span);
        Span merged = span;
        for (Extent other : others) {
            merged = merged.with(other.span);
        }
        if (others.stream().anyMatch(other -> other.context != context)) {
            return null;
        }
        others.forEach(other -> allocations.remove(other.span.start));
        if (!allocations.add(merged.start, merged.bytes(), context, charge)) {
            others.forEach(other -> allocations.add(other.span.start, other.span.bytes(), context, other.charge));
            return null;
        }
        Extent extent = new Extent(merged, context, charge);
        for (Extent other : others) {
            extents.remove(other.span.start);
            charge.absorb(other.charge);
            extent.blocks.putAll(other.blocks);
        }
        charge.split(charge.bytes() - merged.bytes()).giveBack();
        extent.blocks.merge(span, 1, Integer::sum);
        extents.put(merged.start, extent);
        Block block = new Block(span, context);
        blocks.computeIfAbsent(address, key -> new LinkedHashSet<>()).add(block);
        return block;
    }

    /**
     * The block that begins at an address.
     *
     * @param address device address.
     * @return the newest one, because a driver reuses an address only after the earlier memory has been freed; null
     *     when none begins there.
     */
    public Block at(long address) {
        LinkedHashSet<Block> here = blocks.get(address);
        return here == null ? null : here.getLast();
    }

    /** Adds a holder: an executable graph that may allocate the block. */
    public void hold(Block block) {
        block.holders++;
    }

    /** Removes a holder: a node or an executable graph. */
    public void release(Block block) {
        block.holders--;
        settle(block);
    }

    /** Records that a launch allocates the block. */
    public void allocated(Block block) {
        block.isLive = true;
    }

    /** Records that a node or the guest has freed the block. */
    public void freed(Block block) {
        block.isLive = false;
        settle(block);
    }

    /** Drops all blocks of a context, which has ended and whose charges have been given back. */
    void forget(Handle context) {
        extents.values().removeIf(extent -> extent.context == context);
        blocks.values().removeIf(here -> {
            here.removeIf(block -> {
                block.isGone |= block.context == context;
                return block.isGone;
            });
            return here.isEmpty();
        });
    }

    private void settle(Block block) {
        if (block.holders != 0 || block.isLive || block.isGone) {
            return;
        }
        block.isGone = true;
        LinkedHashSet<Block> here = blocks.get(block.address());
        here.remove(block);
        if (here.isEmpty()) {
            blocks.remove(block.address());
        }
        Extent extent = extents.floorEntry(block.address()).getValue();
        if (extent.blocks.merge(block.span, -1, Integer::sum) == 0) {
            extent.blocks.remove(block.span);
            shrink(extent);
        }
    }

    /** Reduces an extent to its remaining blocks, and splits it at gaps. */
    private void shrink(Extent extent) {
        List<Extent> parts = new ArrayList<>();
        for (Map.Entry<Span, Integer> entry : extent.blocks.entrySet()) {
            boolean goesOn = !parts.isEmpty() && parts.getLast().span.overlaps(entry.getKey());
            Extent before = goesOn ? parts.removeLast() : null;
            Extent part = new Extent(goesOn ? before.span.with(entry.getKey()) : entry.getKey(), extent.context, null);
            if (goesOn) {
                part.blocks.putAll(before.blocks);
            }
            part.blocks.put(entry.getKey(), entry.getValue());
            parts.add(part);
        }
        if (parts.size() == 1 && parts.getFirst().span.equals(extent.span)) {
            return;
        }
        allocations.remove(extent.span.start);
        extents.remove(extent.span.start);
        for (Extent part : parts) {
            Extent paid = new Extent(part.span, part.context, extent.charge.split(part.span.bytes()));
            paid.blocks.putAll(part.blocks);
            extents.put(paid.span.start, paid);
            allocations.add(paid.span.start, paid.span.bytes(), paid.context, paid.charge);
        }
        extent.charge.giveBack();
    }
}
