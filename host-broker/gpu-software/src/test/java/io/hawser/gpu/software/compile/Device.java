package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.exec.KernelLaunch;
import io.hawser.gpu.software.ptx.PtxException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A small device for tests: an arena, one image, and launches on the calling thread. */
final class Device implements AutoCloseable {
    final GlobalMemory memory = GlobalMemory.reserve(64L << 20);
    final ByteArrayOutputStream printed = new ByteArrayOutputStream();
    private final CtaSlot slot = new CtaSlot(memory);
    private final Map<PtxVariable, Long> places = new HashMap<>();
    final PtxImage image;
    private long next = memory.base();
    volatile KernelLaunch last; // volatile: a test's other thread polls it

    Device(String... ptx) throws PtxException {
        List<PtxModule> modules = new java.util.ArrayList<>();
        for (String text : ptx) {
            modules.add(PtxModule.compile(text));
        }
        image = PtxImage.link(modules);
        for (PtxVariable variable : image.variables()) {
            places.put(variable, allocate(variable.bytes()));
        }
        image.place(memory, places);
    }

    static String resource(String name) {
        try (InputStream in = Device.class.getResourceAsStream("/kernels/" + name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long allocate(long bytes) {
        long at = next;
        // Leaves a free granule after each allocation: an access to the next address beyond it must fault.
        long rounded = Math.max(1, (bytes + 511) / 512) * 512;
        memory.markAllocated(at, rounded);
        next += rounded + 512;
        return at;
    }

    MemorySegment at(long address, long bytes) {
        return memory.slice(address, bytes);
    }

    long address(String variable) {
        return places.get(image.variable(variable));
    }

    int[] ints(long address, int count) {
        return at(address, 4L * count).toArray(ValueLayout.JAVA_INT_UNALIGNED);
    }

    long put(int... values) {
        long address = allocate(4L * values.length);
        MemorySegment.copy(values, 0, at(address, 4L * values.length), ValueLayout.JAVA_INT_UNALIGNED, 0,
            values.length);
        return address;
    }

    long put(float... values) {
        long address = allocate(4L * values.length);
        MemorySegment.copy(values, 0, at(address, 4L * values.length), ValueLayout.JAVA_FLOAT_UNALIGNED, 0,
            values.length);
        return address;
    }

    /** Launches the whole grid; parameters are Long, Integer, Float, Double or byte[]. */
    void launch(String kernel, int[] grid, int[] block, int shared, Object... params) {
        PtxKernel found = image.kernels().get(kernel);
        last = new KernelLaunch(grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
            pack(found, params), printed::writeBytes);
        for (int z = 0; z < grid[2]; z++) {
            for (int y = 0; y < grid[1]; y++) {
                for (int x = 0; x < grid[0]; x++) {
                    found.runCta(last, x, y, z, slot);
                }
            }
        }
    }

    void launch(String kernel, int grid, int block, Object... params) {
        launch(kernel, new int[] {grid, 1, 1}, new int[] {block, 1, 1}, 0, params);
    }

    static MemorySegment pack(PtxKernel kernel, Object... params) {
        MemorySegment packed = Arena.ofAuto().allocate(Math.max(8, kernel.paramBytes()), 8);
        for (int i = 0; i < params.length; i++) {
            int offset = kernel.params().get(i).offset();
            switch (params[i]) {
                case Long v -> packed.set(ValueLayout.JAVA_LONG, offset, v);
                case Integer v -> packed.set(ValueLayout.JAVA_INT, offset, v);
                case Float v -> packed.set(ValueLayout.JAVA_FLOAT, offset, v);
                case Double v -> packed.set(ValueLayout.JAVA_DOUBLE, offset, v);
                case byte[] v -> MemorySegment.copy(v, 0, packed, ValueLayout.JAVA_BYTE, offset, v.length);
                default -> throw new IllegalArgumentException("parameter " + params[i]);
            }
        }
        return packed;
    }

    @Override
    public void close() {
        memory.close();
    }
}
