package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
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
    private static final int MAX_SLAB_PAGES = 6;
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

        /** The content of the memory that is mapped at an address. */
        int[] contentAt(long address) {
            return gpu.memories.get(mappings.get(address));
        }

        int read(long address) {
            long mapping = mappings.floorKey(address);
            return contentAt(mapping)[(int) ((address - mapping) / PAGE)];
        }

        void write(long address, int value) {
            long mapping = mappings.floorKey(address);
            contentAt(mapping)[(int) ((address - mapping) / PAGE)] = value;
        }
    }

    /** A slab as it must be. */
    private static final class Expected {
        private final int[] content;
        private final boolean[] isAway; // by page
        private boolean isExported;

        Expected(int pages) {
            content = new int[pages];
            isAway = new boolean[pages];
        }
    }

    /** A session and its model. */
    private final class Tenant {
        private final Addresses addresses = new Addresses();
        private final MemoryQuota quota = MemoryQuota.alone(1, QUOTA_PAGES * PAGE);
        private final DeviceArena arena = new DeviceArena(addresses, new AllocationMap(), quota);
        private final TreeMap<Integer, Expected> slabs = new TreeMap<>(); // by first page
        private final Map<Long, int[]> kept = new HashMap<>(); // what has been copied away, by address
        private final int piecePages;
        private boolean isOut;

        Tenant(int piecePages) {
            this.piecePages = piecePages;
            arena.divide(piecePages * PAGE);
            arena.window(0, WINDOW_PAGES / 8 * PAGE);
        }

        private long address(int page) {
            return addresses.base + page * PAGE;
        }

        private int heldPages() {
            int pages = 0;
            for (Expected slab : slabs.values()) {
                for (boolean isAway : slab.isAway) {
                    pages += isAway ? 0 : 1;
                }
            }
            return pages;
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
                Expected slab = new Expected(pages);
                for (int page = 0; page < pages; page++) {
                    slab.content[page] = addresses.read(address(first + page)); // new memory holds anything
                }
                slabs.put(first, slab);
            }
        }

        private void unmap() {
            int first = random.nextInt(WINDOW_PAGES);
            Expected gone = slabs.remove(first);
            for (int page = 0; gone != null && page < gone.content.length; page++) {
                kept.remove(address(first + page));
            }
            assertEquals(gone == null ? INVALID : SUCCESS, arena.unmap(0, address(first)),
                DeviceArenaModelTest.this::context);
        }

        private void export() {
            int page = random.nextInt(WINDOW_PAGES);
            Map.Entry<Integer, Expected> slab = slabs.floorEntry(page);
            int pages = 1 + random.nextInt(MAX_SLAB_PAGES);
            boolean isInside = slab != null && page + pages <= slab.getKey() + slab.getValue().content.length;
            List<DeviceArena.Place> places = arena.open(address(page), pages * PAGE);
            if (isInside) {
                int[] exported = places.stream().flatMapToInt(place -> Arrays.stream(gpu.memories.get(place.memory()),
                    (int) (place.offset() / PAGE), (int) ((place.offset() + place.bytes()) / PAGE))).toArray();
                int from = page - slab.getKey();
                assertArrayEquals(Arrays.copyOfRange(slab.getValue().content, from, from + pages), exported,
                    DeviceArenaModelTest.this::context);
                slab.getValue().isExported = true;
            } else {
                assertEquals(List.of(), places, DeviceArenaModelTest.this::context);
            }
        }

        private void write() {
            Map.Entry<Integer, Expected> slab = slabs.floorEntry(random.nextInt(WINDOW_PAGES));
            if (slab != null) {
                int page = random.nextInt(slab.getValue().content.length);
                slab.getValue().content[page] = random.nextInt();
                addresses.write(address(slab.getKey() + page), slab.getValue().content[page]);
            }
        }

        private void swapOut() {
            boolean stays = slabs.values().stream().anyMatch(slab -> slab.isExported);
            assertEquals(stays, arena.stays(), DeviceArenaModelTest.this::context);
            if (stays) {
                return;
            }
            isOut = true;
            List<Long> leaving = arena.pieces(false);
            List<Long> expected = new ArrayList<>();
            slabs.forEach((first, slab) -> {
                for (int page = 0; page < slab.content.length; page += piecePages) {
                    expected.add(address(first + page));
                }
            });
            assertEquals(expected, leaving, DeviceArenaModelTest.this::context);
            // At times the keeper is full in the middle, and what has left comes back.
            int count = random.nextInt(4) > 0 ? leaving.size() : random.nextInt(leaving.size() + 1);
            for (long piece : leaving.subList(0, count)) {
                kept.put(piece, addresses.contentAt(piece).clone());
                mark(piece, arena.pieceBytes(piece), true);
                assertEquals(SUCCESS, arena.takeAway(piece), DeviceArenaModelTest.this::context);
            }
        }

        private void mark(long piece, long bytes, boolean isAway) {
            int page = (int) ((piece - addresses.base) / PAGE);
            Map.Entry<Integer, Expected> slab = slabs.floorEntry(page);
            int from = page - slab.getKey();
            Arrays.fill(slab.getValue().isAway, from, from + (int) (bytes / PAGE), isAway);
        }

        private void swapIn() {
            for (long piece : arena.pieces(true)) {
                int[] content = kept.get(piece);
                boolean hasRoom = gpu.usedPages() + content.length <= GPU_PAGES;
                assertEquals(hasRoom ? SUCCESS : OUT_OF_MEMORY, arena.bringBack(piece),
                    DeviceArenaModelTest.this::context);
                if (!hasRoom) {
                    return; // the rest comes later
                }
                System.arraycopy(content, 0, addresses.contentAt(piece), 0, content.length);
                kept.remove(piece);
                mark(piece, content.length * PAGE, false);
            }
            isOut = false;
        }

        private void check() {
            assertEquals(heldPages() * PAGE, quota.heldBytes(), DeviceArenaModelTest.this::context);
            slabs.forEach((first, slab) -> {
                int[] found = new int[slab.content.length];
                for (int page = 0; page < found.length; page++) {
                    int inPiece = page % piecePages;
                    found[page] = slab.isAway[page] ? kept.get(address(first + page - inPiece))[inPiece]
                        : addresses.read(address(first + page));
                }
                assertArrayEquals(slab.content, found, DeviceArenaModelTest.this::context);
            });
        }
    }

    private String context() {
        return "seed=" + seed + " step=" + step;
    }

    @Test
    void shouldAgreeWithAModel() {
        List<Tenant> tenants = List.of(new Tenant(MAX_SLAB_PAGES), new Tenant(MAX_SLAB_PAGES / 2 - 1));
        for (step = 0; step < OPERATIONS; step++) {
            tenants.get(random.nextInt(tenants.size())).operate();
            assertEquals(tenants.stream().mapToInt(Tenant::heldPages).sum(), gpu.usedPages(), this::context);
        }
    }
}
