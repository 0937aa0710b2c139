package io.hawser.gpu.nvidia;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.hawser.cuda.backend.DeviceLinker;
import io.hawser.cuda.generated.CudaNative;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** Links device code with the driver's linker. A context must be current. Session thread only. */
final class NvidiaLinker implements DeviceLinker {
    private static final int LOG_BYTES = 32 << 10;
    private static final int PTX = 1; // CU_JIT_INPUT_PTX
    // CUjit_option of cuda.h: info log, its size, error log, its size
    private static final int[] LOG_OPTIONS = {3, 4, 5, 6};

    @Override
    public int link(List<Input> inputs, List<Option> options, StringBuilder log, Consumer<MemorySegment> image) {
        try (Arena arena = Arena.ofConfined()) { // the driver uses options and logs until the link is destroyed
            MemorySegment info = arena.allocate(LOG_BYTES);
            MemorySegment error = arena.allocate(LOG_BYTES);
            int count = options.size() + LOG_OPTIONS.length;
            MemorySegment names = arena.allocate((long) count * Integer.BYTES, Integer.BYTES);
            MemorySegment values = arena.allocate((long) count * Long.BYTES, Long.BYTES);
            long[] logs = {info.address(), LOG_BYTES, error.address(), LOG_BYTES};
            for (int i = 0; i < LOG_OPTIONS.length; i++) {
                names.setAtIndex(JAVA_INT, i, LOG_OPTIONS[i]);
                values.setAtIndex(JAVA_LONG, i, logs[i]);
            }
            put(options, names, values, LOG_OPTIONS.length);
            MemorySegment state = arena.allocate(JAVA_LONG);
            int result = CudaNative.cuLinkCreate_v2(count, names, values, state);
            if (result != 0) {
                return result;
            }
            try {
                return complete(arena, state.get(JAVA_LONG, 0), inputs, image);
            } finally {
                log.append(text(info)).append(text(error));
                CudaNative.cuLinkDestroy(state.get(JAVA_LONG, 0));
            }
        }
    }

    private static void put(List<Option> options, MemorySegment names, MemorySegment values, int from) {
        for (int i = 0; i < options.size(); i++) {
            names.setAtIndex(JAVA_INT, from + i, options.get(i).option());
            values.setAtIndex(JAVA_LONG, from + i, options.get(i).value());
        }
    }

    private static int complete(Arena arena, long state, List<Input> inputs, Consumer<MemorySegment> image) {
        for (Input input : inputs) {
            int count = input.options().size();
            MemorySegment names = arena.allocate(Math.max(1, count) * (long) Integer.BYTES, Integer.BYTES);
            MemorySegment values = arena.allocate(Math.max(1, count) * (long) Long.BYTES, Long.BYTES);
            put(input.options(), names, values, 0);
            MemorySegment data = input.bytes();
            // A NUL follows text inputs; the driver expects it in the length.
            long bytes = data.byteSize() + (input.type() == PTX ? 1 : 0);
            int result = CudaNative.cuLinkAddData_v2(state, input.type(), data, bytes,
                arena.allocateFrom(input.name()), count, names, values);
            if (result != 0) {
                return result;
            }
        }
        MemorySegment cubin = arena.allocate(JAVA_LONG);
        MemorySegment bytes = arena.allocate(JAVA_LONG);
        int result = CudaNative.cuLinkComplete(state, cubin, bytes);
        if (result == 0) {
            image.accept(MemorySegment.ofAddress(cubin.get(JAVA_LONG, 0)).reinterpret(bytes.get(JAVA_LONG, 0)));
        }
        return result;
    }

    private static String text(MemorySegment log) {
        byte[] bytes = log.toArray(JAVA_BYTE);
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(Arrays.copyOf(bytes, length), StandardCharsets.UTF_8);
    }
}
