package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Random allocations, frees, exports, writes and swaps of two sessions agree with a model. Both reserve 60 % of a GPU.
 * The GPU is strict: it takes each handle and mapping once, and new memory holds anything.
 */
class DeviceArenaModelTest {
    private static final int OPERATIONS = 100_000;
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final int GPU_PAGES = 40;
    private static final int QUOTA_PAGES = 24;
    private static final int WINDOW_PAGES = 64;
    private static final int MAX_SLAB_PAGES = 4;
    private static final int SUCCESS = CUresult.CUDA_SUCCESS;
    private static final int INVALID = CUresult.CUDA_ERROR_INVALID_VALUE;
    private static final int OUT_OF_MEMORY = CUresult.CUDA_ERROR_OUT_OF_MEMORY;

    private final long seed = System.nanoTime();
    private final Random random = new Random(seed);
    private final Gpu gpu = new Gpu();
    private int step;

    /** Memory by its handle: the content of each page. */
    private static final class Gpu {
        private final Map<Long, int[]> memories = new HashMap<>();
        private long nextHandle = 1;

        int usedPages() {
            return memories.values().stream().mapToInt(pages -> pages.length).sum();
        }
    }

    /** A session's addresses. */
    private final class Addresses implements VirtualMemory {
        private final TreeMap<Long, Long> mappings = new TreeMap<>(); // handles by address
        private long base;

        @Override
        public int granularity(int device, int compression, int usage, int option, MemorySegment out) {
            out.set(ValueLayout.JAVA_LONG, 0, PAGE);
            return SUCCESS;
        }

        @Override
        public int reserve(long bytes, long alignment, long wanted, MemorySegment out) {
            base = wanted;
            out.set(ValueLayout.JAVA_LONG, 0, wanted);
            return SUCCESS;
        }

        @Override
        public int unreserve(long address, long bytes) {
            return SUCCESS;
        }

        @Override
        public int create(long bytes, int device, int compression, int usage, MemorySegment out) {
            int pages = (int) (bytes / PAGE);
            if (gpu.usedPages() + pages > GPU_PAGES) {
                return OUT_OF_MEMORY;
            }
            int[] content = random.ints(pages).toArray();
            gpu.memories.put(gpu.nextHandle, content);
            out.set(ValueLayout.JAVA_LONG, 0, gpu.nextHandle++);
            return SUCCESS;
        }

        @Override
        public int share(long handle, MemorySegment out) {
            throw new AssertionError("the test keeps the content itself");
        }

        @Override
        public int open(int descriptor, long bytes, MemorySegment out) {
            throw new AssertionError("no session opens the other's memory");
        }

        @Override
        public int release(long handle) {
            assertNotNull(gpu.memories.remove(handle), () -> context() + " released twice");
            return mappings.containsValue(handle) ? INVALID : SUCCESS;
        }

        @Override
        public int map(long address, long bytes, long offset, long handle) {
            int[] content = gpu.memories.get(handle);
            boolean isFree = mappings.subMap(address, address + bytes).isEmpty();
            if (content == null || !isFree || mappings.containsValue(handle) || content.length * PAGE != bytes) {
                return INVALID;
            }
            mappings.put(address, handle);
            return SUCCESS;
        }

        @Override
        public int unmap(long address, long bytes) {
            Long handle = mappings.remove(address);
            return handle == null || gpu.memories.get(handle).length * PAGE != bytes ? INVALID : SUCCESS;
        }

        @Override
        public int setAccess(long address, long bytes, int device, int flags) {
            return mappings.containsKey(address) ? SUCCESS : INVALID;
        }

        int[] contentAt(long address) {
            return gpu.memories.get(mappings.get(address));
        }
    }

    /** A slab as it must be. */
    private static final class Expected {
        private final int[] content;
        private boolean isExported;
        private boolean isAway;

        Expected(int[] content) {
            this.content = content;
        }
    }

    /** A session and its model. */
    private final class Tenant {
        private final Addresses addresses = new Addresses();
        private final MemoryQuota quota = MemoryQuota.alone(1, QUOTA_PAGES * PAGE);
        private final DeviceArena arena = new DeviceArena(addresses, new AllocationMap(), quota);
        private final TreeMap<Integer, Expected> slabs = new TreeMap<>(); // by first page
        private final Map<Long, int[]> kept = new HashMap<>(); // what has been copied away, by address
        private boolean isOut;

        Tenant() {
            arena.window(0, WINDOW_PAGES / 8 * PAGE);
        }

        private long address(int page) {
            return addresses.base + page * PAGE;
        }

        private int heldPages() {
            return slabs.values().stream().filter(slab -> !slab.isAway).mapToInt(slab -> slab.content.length).sum();
        }

        private boolean isFree(int first, int pages) {
            Map.Entry<Integer, Expected> below = slabs.lowerEntry(first + pages);
            return first + pages <= WINDOW_PAGES
                && (below == null || below.getKey() + below.getValue().content.length <= first);
        }

        void operate() {
            int choice = random.nextInt(12);
            if (isOut && choice < 6) {
                swapIn();
            } else if (isOut) {
                unmap(); // as the end of a session does
            } else if (choice < 4) {
                map();
            } else if (choice < 6) {
                unmap();
            } else if (choice < 7) {
                export();
            } else if (choice < 9) {
                write();
            } else {
                swapOut();
            }
            check();
        }

        private void map() {
            int first = random.nextInt(WINDOW_PAGES);
            int pages = 1 + random.nextInt(MAX_SLAB_PAGES);
            boolean hasRoom = heldPages() + pages <= QUOTA_PAGES && gpu.usedPages() + pages <= GPU_PAGES;
            int expected = !isFree(first, pages) ? INVALID : hasRoom ? SUCCESS : OUT_OF_MEMORY;
            assertEquals(expected, arena.map(0, address(first), pages * PAGE), DeviceArenaModelTest.this::context);
            if (expected == SUCCESS) {
                slabs.put(first, new Expected(addresses.contentAt(address(first)).clone()));
            }
        }

        private void unmap() {
            int first = random.nextInt(WINDOW_PAGES);
            Expected gone = slabs.remove(first);
            kept.remove(address(first));
            assertEquals(gone == null ? INVALID : SUCCESS, arena.unmap(0, address(first)),
                DeviceArenaModelTest.this::context);
        }

        private void export() {
            int page = random.nextInt(WINDOW_PAGES);
            Map.Entry<Integer, Expected> slab = slabs.floorEntry(page);
            boolean isInside = slab != null && page < slab.getKey() + slab.getValue().content.length;
            assertEquals(isInside, arena.open(address(page), PAGE) != null, DeviceArenaModelTest.this::context);
            if (isInside) {
                slab.getValue().isExported = true;
            }
        }

        private void write() {
            Map.Entry<Integer, Expected> slab = slabs.floorEntry(random.nextInt(WINDOW_PAGES));
            if (slab != null) {
                int page = random.nextInt(slab.getValue().content.length);
                slab.getValue().content[page] = random.nextInt();
                addresses.contentAt(address(slab.getKey()))[page] = slab.getValue().content[page];
            }
        }

        private void swapOut() {
            boolean stays = slabs.values().stream().anyMatch(slab -> slab.isExported);
            assertEquals(stays, arena.stays(), DeviceArenaModelTest.this::context);
            if (stays) {
                return;
            }
            isOut = true;
            List<Long> leaving = arena.slabs(false);
            assertEquals(slabs.keySet().stream().map(this::address).toList(), leaving,
                DeviceArenaModelTest.this::context);
            // At times the keeper is full in the middle, and what has left comes back.
            int count = random.nextInt(4) > 0 ? leaving.size() : random.nextInt(leaving.size() + 1);
            for (long slab : leaving.subList(0, count)) {
                kept.put(slab, addresses.contentAt(slab).clone());
                assertEquals(SUCCESS, arena.takeAway(slab), DeviceArenaModelTest.this::context);
                expected(slab).isAway = true;
            }
        }

        private Expected expected(long slab) {
            return slabs.get((int) ((slab - addresses.base) / PAGE));
        }

        private void swapIn() {
            for (long slab : new ArrayList<>(arena.slabs(true))) {
                int[] content = kept.get(slab);
                boolean hasRoom = gpu.usedPages() + content.length <= GPU_PAGES;
                assertEquals(hasRoom ? SUCCESS : OUT_OF_MEMORY, arena.bringBack(slab),
                    DeviceArenaModelTest.this::context);
                if (!hasRoom) {
                    return; // the rest comes later
                }
                System.arraycopy(content, 0, addresses.contentAt(slab), 0, content.length);
                kept.remove(slab);
                expected(slab).isAway = false;
            }
            isOut = false;
        }

        private void check() {
            assertEquals(heldPages() * PAGE, quota.heldBytes(), DeviceArenaModelTest.this::context);
            slabs.forEach((first, slab) -> {
                int[] found = slab.isAway ? kept.get(address(first)) : addresses.contentAt(address(first));
                assertEquals(Arrays.toString(slab.content), Arrays.toString(found), DeviceArenaModelTest.this::context);
            });
        }
    }

    private String context() {
        return "seed=" + seed + " step=" + step;
    }

    @Test
    void shouldAgreeWithAModel() {
        List<Tenant> tenants = List.of(new Tenant(), new Tenant());
        for (step = 0; step < OPERATIONS; step++) {
            tenants.get(random.nextInt(tenants.size())).operate();
            assertEquals(tenants.stream().mapToInt(Tenant::heldPages).sum(), gpu.usedPages(), this::context);
        }
    }
}
