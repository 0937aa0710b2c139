package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.generated.CUdevice_attribute;
import io.hawser.cuda.generated.HwsDeviceInfo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Mapped host memory works as device memory does, and kernels reach no other part of the region. */
class HostMemoryTest {
    private static final long PAGE = 4096;
    private static final long REGION_BYTES = 16 * PAGE;
    private static final long PART_OFFSET = 4 * PAGE;
    private static final long PART_BYTES = 3 * PAGE;
    private static final long TIMEOUT_S = 60;
    private static final String HEAD = ".version 8.0\n.target sm_75\n.address_size 64\n";
    private static final String ENTRY = "(.param .u64 out, .param .u64 in) {\n.reg .b64 %in, %out;\n"
        + "ld.param.u64 %out, [out]; ld.param.u64 %in, [in];\n";

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(HwsDeviceInfo.BYTES, 8);
    private final MemorySegment region = arena.allocate(REGION_BYTES, PAGE);
    private final MemorySegment part = region.asSlice(PART_OFFSET, PART_BYTES);
    private final SoftwareBackend backend = new SoftwareBackend(64 << 20, 2);
    private long context;

    @BeforeEach
    void open() {
        assertEquals(CUDA_SUCCESS, backend.createContext(0, 0, true, out));
        context = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.setCurrent(context));
        assertTrue(backend.canMapHost());
        assertEquals(CUDA_SUCCESS, backend.attachRegion(region));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    @Test
    void shouldGiveAMappedPartItsRealAddress() {
        assertEquals(part.address(), map(part));
    }

    @ParameterizedTest
    @ValueSource(strings = {".global", ""})
    void shouldLoadAndStoreEveryWidth(String space) throws Exception {
        long address = map(part);
        byte[] bytes = new byte[512];
        new Random(3).nextBytes(bytes);
        MemorySegment.copy(bytes, 0, part, ValueLayout.JAVA_BYTE, 0, bytes.length);
        StringBuilder body = new StringBuilder(".visible .entry k" + ENTRY);
        int at = 0;
        String[] types = {"u8:r", "s8:r", "u16:h", "s16:h", "u32:r", "s32:r", "u64:d", "s64:d", "f32:f", "f64:g",
            "v2.u8:r", "v4.u8:r", "v2.u16:h", "v4.u16:h", "v2.u32:r", "v4.f32:f", "v2.u64:d", "v2.f64:g"};
        body.append(".reg .b32 %r<4>; .reg .b16 %h<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .f64 %g<4>;\n");
        for (String type : types) {
            String[] parts = type.split(":");
            int count = parts[0].startsWith("v") ? parts[0].charAt(1) - '0' : 1;
            StringBuilder value = new StringBuilder("%" + parts[1] + "0");
            for (int k = 1; k < count; k++) {
                value.append(", %").append(parts[1]).append(k);
            }
            String operand = count == 1 ? value.toString() : "{" + value + "}";
            body.append("ld").append(space).append('.').append(parts[0]).append(' ').append(operand)
                .append(", [%in+").append(at).append("];\nst").append(space).append('.').append(parts[0])
                .append(" [%out+").append(at).append("], ").append(operand).append(";\n");
            at += 16;
        }
        run(body.append("ret; }").toString(), 1, 1, address + PAGE, address);
        byte[] expected = new byte[512];
        int[] sizes = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 4, 4, 8, 8, 16, 16, 16};
        for (int k = 0; k < sizes.length; k++) {
            System.arraycopy(bytes, 16 * k, expected, 16 * k, sizes[k]);
        }
        assertArrayEquals(expected, part.asSlice(PAGE, 512).toArray(ValueLayout.JAVA_BYTE));
    }

    @ParameterizedTest
    @ValueSource(strings = {".global", ""})
    void shouldDoAtomicsFromEveryThread(String space) throws Exception {
        long address = map(part);
        int n = 16 * 64;
        String atom = "atom" + space;
        String code = ".visible .entry k" + ENTRY + ".reg .b32 %r<4>; .reg .b64 %d<2>; .reg .f32 %f; .reg .b16 %h<3>;\n"
            + ".reg .pred %p;\n"
            + atom + ".add.u32 %r0, [%out], 3;\n"
            + atom + ".add.u64 %d0, [%out+8], 8589934592;\n"
            + atom + ".max.u32 %r1, [%out+16], %r0;\n"
            + atom + ".inc.u32 %r2, [%out+20], 17;\n"
            + "mov.f32 %f, 0f3F000000;\nred" + space + ".add.f32 [%out+24], %f;\n"
            + atom + ".exch.b64 %d1, [%out+32], %in;\n"
            + "again: ld.volatile" + space + ".u32 %r1, [%out+40]; add.u32 %r2, %r1, 1;\n"
            + atom + ".cas.b32 %r3, [%out+40], %r1, %r2; setp.ne.u32 %p, %r3, %r1; @%p bra again;\nret; }";
        run(code, 16, 64, address, 77);
        assertEquals(3 * n, part.get(ValueLayout.JAVA_INT, 0));
        assertEquals((long) n << 33, part.get(ValueLayout.JAVA_LONG, 8));
        assertEquals(3 * (n - 1), part.get(ValueLayout.JAVA_INT, 16));
        assertEquals(n % 18, part.get(ValueLayout.JAVA_INT, 20));
        assertEquals(n * 0.5f, part.get(ValueLayout.JAVA_FLOAT, 24));
        assertEquals(77, part.get(ValueLayout.JAVA_LONG, 32));
        assertEquals(n, part.get(ValueLayout.JAVA_INT, 40));
    }

    /** Offsets are relative to the region; one part is its pages 4 to 6, another part its page 9. */
    @ParameterizedTest
    @CsvSource({"ld.global.u8, 16384, 0", "ld.global.u8, 28671, 0", "ld.global.u8, 16383, 700",
        "ld.global.u8, 28672, 700", "ld.u8, 16383, 700", "ld.u8, 28672, 700", "st.global.u8, 28671, 0",
        "st.global.u8, 28672, 700", "st.u8, 28672, 700", "ld.global.v4.u32, 28656, 0", "ld.global.v4.u32, 28672, 700",
        "ld.v4.u32, 28672, 700", "ld.global.u64, 28664, 0", "ld.global.u64, 28672, 700", "ld.global.u64, 28668, 716",
        "atom.global.add.u32, 28668, 0", "atom.global.add.u32, 28672, 700", "atom.add.u32, 28672, 700",
        "ld.global.u8, 0, 700", "ld.global.u8, 36863, 700", "ld.global.u8, 36864, 0", "ld.global.u8, 40960, 700",
        "ld.global.u8, 65535, 700", "ld.global.u8, 65536, 700", "ld.global.u8, -1, 700"})
    void shouldFaultWhereNothingIsMapped(String access, long offset, int expected) throws Exception {
        map(part);
        map(region.asSlice(9 * PAGE, PAGE));
        assertEquals(expected, touch(access, region.address() + offset));
    }

    @Test
    void shouldFaultBeforeAnythingIsMapped() throws Exception {
        assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, touch("ld.global.u8", part.address()));
    }

    @Test
    void shouldFaultOnceUnmappedAgain() throws Exception {
        long address = map(part);
        assertEquals(CUDA_SUCCESS, touch("st.global.u8", address));
        assertEquals(CUDA_SUCCESS, backend.unmapHost(address));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemsetD8Async(address, (byte) 1, 1, 0));
        assertEquals(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, backend.unmapHost(address));
        assertEquals(CUDA_ERROR_ILLEGAL_ADDRESS, touch("ld.global.u8", address));
    }

    @Test
    void shouldCopyAndFillMappedMemoryLikeDeviceMemory() throws Exception {
        long address = map(part);
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemAlloc_v2(out, PART_BYTES));
        long device = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD32Async(device, 0x01020304, PART_BYTES / 4, 0));
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemcpyDtoDAsync_v2(address, device, PART_BYTES, 0));
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD2D8Async(address + 1, 64, (byte) 9, 2, 100, 0));
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemcpyDtoDAsync_v2(device, address, PART_BYTES, 0));
        MemorySegment got = arena.allocate(PART_BYTES);
        assertEquals(CUDA_SUCCESS, backend.copyDtoH(got, device, 0));
        assertEquals(CUDA_SUCCESS, reached());
        byte[] expected = new byte[(int) PART_BYTES];
        for (int i = 0; i < expected.length; i++) {
            expected[i] = (byte) (4 - i % 4);
        }
        for (int row = 0; row < 100; row++) {
            expected[64 * row + 1] = 9;
            expected[64 * row + 2] = 9;
        }
        assertArrayEquals(expected, got.toArray(ValueLayout.JAVA_BYTE));
        assertArrayEquals(expected, part.toArray(ValueLayout.JAVA_BYTE));
    }

    @Test
    void shouldRefuseCopiesThatLeaveTheMappedPart() {
        long address = map(part);
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.driver().cuMemsetD8Async(address, (byte) 0, PART_BYTES + 1, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemsetD8Async(address - 1, (byte) 0, 2, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.copyHtoD(region.address(), arena.allocate(16), 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.driver().cuMemcpyDtoDAsync_v2(address, address + PAGE, PART_BYTES, 0));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuMemFree_v2(address));
    }

    @Test
    void shouldRefusePartsThatAreNoWholePagesOfTheRegionOrAreMapped() {
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.mapHost(region.asSlice(512, PAGE), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.mapHost(region.asSlice(0, PAGE + 512), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.mapHost(region.asSlice(0, 0), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.mapHost(arena.allocate(PAGE, PAGE), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE,
            backend.mapHost(MemorySegment.ofAddress(region.address()).reinterpret(REGION_BYTES + PAGE), out));
        map(part);
        assertEquals(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, backend.mapHost(part, out));
        assertEquals(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            backend.mapHost(region.asSlice(PART_OFFSET - PAGE, 2 * PAGE), out));
        assertEquals(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            backend.mapHost(region.asSlice(PART_OFFSET + 2 * PAGE, 2 * PAGE), out));
        map(region.asSlice(PART_OFFSET + PART_BYTES, PAGE));
        map(region.asSlice(PART_OFFSET - PAGE, PAGE));
        assertEquals(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, backend.attachRegion(region));
    }

    @Test
    void shouldSayThatItMapsHostMemoryOnlyWithARegion() {
        long attribute = HwsDeviceInfo.ATTRIBUTES_OFFSET
            + 4L * CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
        assertEquals(CUDA_SUCCESS, backend.deviceInfo(0, out));
        assertEquals(1, out.get(ValueLayout.JAVA_INT, attribute));
        try (SoftwareBackend without = new SoftwareBackend(1 << 20, 1)) {
            assertEquals(CUDA_SUCCESS, without.deviceInfo(0, out));
            assertEquals(0, out.get(ValueLayout.JAVA_INT, attribute));
            assertEquals(CUDA_ERROR_INVALID_VALUE, without.mapHost(part, out));
        }
    }

    private long map(MemorySegment piece) {
        assertEquals(CUDA_SUCCESS, backend.mapHost(piece, out));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    /** The result of a kernel with a single access. */
    private int touch(String access, long address) throws Exception {
        String value = access.contains(".v4") ? "{%r0, %r1, %r2, %r3}" : access.contains("64") ? "%d" : "%r0";
        String instruction = access.startsWith("st") ? access + " [%out], %r0;"
            : access + " " + value + ", [%out]" + (access.startsWith("atom") ? ", 1;" : ";");
        launch(".visible .entry k" + ENTRY + ".reg .b32 %r<4>; .reg .b64 %d; mov.u32 %r0, 7;\n" + instruction
            + "\nret; }", 1, 1, address, 0);
        return reached();
    }

    private void run(String code, int grid, int block, long first, long second) throws Exception {
        launch(code, grid, block, first, second);
        assertEquals(CUDA_SUCCESS, reached());
    }

    private void launch(String code, int grid, int block, long first, long second) {
        StringBuilder log = new StringBuilder();
        MemorySegment image = MemorySegment.ofArray((HEAD + code).getBytes(StandardCharsets.US_ASCII));
        assertEquals(CUDA_SUCCESS, backend.loadImage(image, out, log), log::toString);
        FunctionInfo info = new FunctionInfo();
        assertEquals(CUDA_SUCCESS, backend.function(out.get(ValueLayout.JAVA_LONG, 0), "k", info));
        MemorySegment params = arena.allocate(16, 8);
        params.set(ValueLayout.JAVA_LONG, 0, first);
        params.set(ValueLayout.JAVA_LONG, 8, second);
        assertEquals(CUDA_SUCCESS,
            backend.launch(info.handle(), grid, 1, 1, block, 1, 1, 0, 0, 0, params, MemorySegment.NULL));
    }

    private int reached() throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        assertEquals(CUDA_SUCCESS, backend.whenStreamReached(context, 0, done::complete));
        return done.get(TIMEOUT_S, TimeUnit.SECONDS);
    }
}
