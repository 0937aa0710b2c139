package io.hawser.gpu.software.compile;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Splits a kernel at the places where its threads wait. Each region is the code from one such place to the next. A
 * block that several places reach is copied into each of their regions, so that every method has one entry, which the
 * JIT compiles well. A large region is cut at blocks that then begin their own regions.
 */
final class Regions {
    /** The code that runs from one place to the next. */
    static final class Region {
        final int number;
        final Block entry;
        List<Block> blocks;
        final BitSet members = new BitSet();

        Region(int number, Block entry) {
            this.number = number;
            this.entry = entry;
        }
    }

    // By default HotSpot does not compile methods over 8000 bytes; a weight is about one byte.
    private static final int MAX_REGION_WEIGHT = 5_000;
    private static final int MAX_REGIONS = 20_000;

    final List<Region> all = new ArrayList<>();
    private final Map<Block, Region> byEntry = new HashMap<>();
    private final BitSet cuts = new BitSet();

    Regions(Code code) {
        int original = code.blocks.stream().mapToInt(Block::weight).sum();
        while (true) {
            form(code.blocks.get(0));
            if (!copiesTooMuch(original, code.blocks.size())) {
                return;
            }
        }
    }

    private Region region(Block entry) {
        return byEntry.computeIfAbsent(entry, e -> {
            if (all.size() >= MAX_REGIONS) {
                throw new Refusal("kernels of more than " + MAX_REGIONS + " parts between waits");
            }
            Region region = new Region(all.size(), e);
            all.add(region);
            return region;
        });
    }

    private void form(Block start) {
        all.clear();
        byEntry.clear();
        region(start);
        for (int i = 0; i < all.size(); i++) {
            Region region = all.get(i);
            region.blocks = members(region);
            region.members.clear();
            region.blocks.forEach(b -> region.members.set(b.id));
            for (Block block : region.blocks) {
                if (block.term instanceof Block.Term.Suspend s) {
                    region(s.next());
                }
                for (Block next : block.successors()) {
                    if (leaves(region, next)) {
                        region(next);
                    }
                }
            }
        }
    }

    private List<Block> members(Region region) {
        while (true) {
            List<Block> order = Order.reversePostorder(region.entry, b -> b != region.entry && !cuts.get(b.id));
            int weight = 0;
            int last = 0;
            while (last < order.size() && (last == 0 || weight + order.get(last).weight() <= MAX_REGION_WEIGHT)) {
                weight += order.get(last++).weight();
            }
            if (last == order.size()) {
                return order;
            }
            BitSet inside = new BitSet();
            order.subList(0, last).forEach(b -> inside.set(b.id));
            for (Block block : order.subList(0, last)) {
                for (Block next : block.successors()) {
                    if (!inside.get(next.id) && next != region.entry) {
                        cuts.set(next.id);
                    }
                }
            }
        }
    }

    /** Whether the edge to a block leaves the region. */
    boolean leaves(Region region, Block next) {
        return !region.members.get(next.id) || next != region.entry && cuts.get(next.id);
    }

    Region of(Block entry) {
        return byEntry.get(entry);
    }

    /**
     * Copying blocks into many regions can multiply the code. Then the blocks where paths join begin regions of their
     * own.
     */
    private boolean copiesTooMuch(int original, int blocks) {
        long total = 0;
        int[] copies = new int[blocks];
        for (Region region : all) {
            for (Block block : region.blocks) {
                total += block.weight();
                copies[block.id]++;
            }
        }
        if (total <= 3L * original + 20_000) {
            return false;
        }
        int[] ways = new int[blocks];
        for (Region region : all) {
            for (Block block : region.blocks) {
                block.successors().forEach(s -> ways[s.id]++);
            }
        }
        boolean cut = false;
        for (Region region : all) {
            for (Block block : region.blocks) {
                if (copies[block.id] > 2 && ways[block.id] > 1 && !cuts.get(block.id)) {
                    cuts.set(block.id);
                    cut = true;
                }
            }
        }
        return cut;
    }
}
