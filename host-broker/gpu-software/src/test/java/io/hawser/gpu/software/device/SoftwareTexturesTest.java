package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.generated.CUDA_ARRAY3D_DESCRIPTOR;
import io.hawser.cuda.generated.CUDA_RESOURCE_DESC;
import io.hawser.cuda.generated.CUDA_RESOURCE_VIEW_DESC;
import io.hawser.cuda.generated.CUDA_TEXTURE_DESC;
import io.hawser.cuda.generated.CUarray_format;
import io.hawser.cuda.generated.CUresourceViewFormat;
import io.hawser.cuda.generated.CUresourcetype;
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

/** Creation of textures and surfaces from a guest's descriptors, and fetches from what was created. */
class SoftwareTexturesTest {
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
    private static final long TIMEOUT_S = 60;
    private static final int NORMALIZED = 2;
    private static final int READ_AS_INTEGER = 1;
    private static final int POINTS = 64;
    private static final String FETCH = """
        .version 8.0
        .target sm_75
        .address_size 64
        .visible .entry fetch(.param .u64 t, .param .u64 in, .param .u64 out) {
            .reg .f32 %f<4>; .reg .b32 %r<8>; .reg .b64 %d<6>;
            ld.param.u64 %d0, [t]; ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];
            mov.u32 %r0, %tid.x; mul.wide.u32 %d3, %r0, 16; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
            ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d1];
            TEX
            st.global.v4.b32 [%d2], {%r1, %r2, %r3, %r4};
            ret;
        }
        """;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private final MemorySegment resource = arena.allocate(CUDA_RESOURCE_DESC.BYTES, 8);
    private final MemorySegment texture = arena.allocate(CUDA_TEXTURE_DESC.BYTES, 8);
    private final MemorySegment view = arena.allocate(CUDA_RESOURCE_VIEW_DESC.BYTES, 8);
    private SoftwareBackend backend;
    private long context;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        assertEquals(CUDA_SUCCESS, backend.createContext(0, 0, true, out));
        context = out.get(LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.setCurrent(context));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private long array(int width, int height, int depth, int format, int channels, int flags) {
        MemorySegment descriptor = arena.allocate(CUDA_ARRAY3D_DESCRIPTOR.BYTES, 8);
        descriptor.set(LONG, CUDA_ARRAY3D_DESCRIPTOR.WIDTH_OFFSET, width);
        descriptor.set(LONG, CUDA_ARRAY3D_DESCRIPTOR.HEIGHT_OFFSET, height);
        descriptor.set(LONG, CUDA_ARRAY3D_DESCRIPTOR.DEPTH_OFFSET, depth);
        descriptor.set(INT, CUDA_ARRAY3D_DESCRIPTOR.FORMAT_OFFSET, format);
        descriptor.set(INT, CUDA_ARRAY3D_DESCRIPTOR.NUM_CHANNELS_OFFSET, channels);
        descriptor.set(INT, CUDA_ARRAY3D_DESCRIPTOR.FLAGS_OFFSET, flags);
        assertEquals(CUDA_SUCCESS, backend.driver().cuArray3DCreate_v2(out, descriptor));
        return out.get(LONG, 0);
    }

    private long allocate(long bytes) {
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemAlloc_v2(out, bytes));
        return out.get(LONG, 0);
    }

    private void ofArray(long array) {
        resource.fill((byte) 0);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET, CUresourcetype.CU_RESOURCE_TYPE_ARRAY);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_ARRAY_H_ARRAY_OFFSET, array);
    }

    private void ofLinear(long address, int format, int channels, long bytes) {
        resource.fill((byte) 0);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET, CUresourcetype.CU_RESOURCE_TYPE_LINEAR);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_DEV_PTR_OFFSET, address);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_LINEAR_FORMAT_OFFSET, format);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_LINEAR_NUM_CHANNELS_OFFSET, channels);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_LINEAR_SIZE_IN_BYTES_OFFSET, bytes);
    }

    private void ofPitch(long address, int format, long width, long height, long pitch) {
        resource.fill((byte) 0);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_TYPE_OFFSET, CUresourcetype.CU_RESOURCE_TYPE_PITCH2D);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_DEV_PTR_OFFSET, address);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_FORMAT_OFFSET, format);
        resource.set(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_NUM_CHANNELS_OFFSET, 1);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_WIDTH_OFFSET, width);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_HEIGHT_OFFSET, height);
        resource.set(LONG, CUDA_RESOURCE_DESC.RES_PITCH2_D_PITCH_IN_BYTES_OFFSET, pitch);
    }

    private void reads(int mode, int filter, int flags) {
        texture.fill((byte) 0);
        for (int i = 0; i < 3; i++) {
            texture.set(INT, CUDA_TEXTURE_DESC.ADDRESS_MODE_OFFSET + 4L * i, mode);
        }
        texture.set(INT, CUDA_TEXTURE_DESC.FILTER_MODE_OFFSET, filter);
        texture.set(INT, CUDA_TEXTURE_DESC.FLAGS_OFFSET, flags);
    }

    private void views(int format, long width, long height, long depth, int firstLayer, int lastLayer) {
        view.fill((byte) 0);
        view.set(INT, CUDA_RESOURCE_VIEW_DESC.FORMAT_OFFSET, format);
        view.set(LONG, CUDA_RESOURCE_VIEW_DESC.WIDTH_OFFSET, width);
        view.set(LONG, CUDA_RESOURCE_VIEW_DESC.HEIGHT_OFFSET, height);
        view.set(LONG, CUDA_RESOURCE_VIEW_DESC.DEPTH_OFFSET, depth);
        view.set(INT, CUDA_RESOURCE_VIEW_DESC.FIRST_LAYER_OFFSET, firstLayer);
        view.set(INT, CUDA_RESOURCE_VIEW_DESC.LAST_LAYER_OFFSET, lastLayer);
    }

    private int create() {
        return backend.arrays().createTexture(out, resource, texture, MemorySegment.NULL);
    }

    private int createWithView() {
        return backend.arrays().createTexture(out, resource, texture, view);
    }

    private int finish() throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        assertEquals(CUDA_SUCCESS, backend.whenContextReached(context, done::complete));
        return done.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private long kernel(String tex) {
        byte[] text = FETCH.replace("TEX", tex).getBytes(StandardCharsets.UTF_8);
        StringBuilder log = new StringBuilder();
        assertEquals(CUDA_SUCCESS, backend.loadImage(MemorySegment.ofArray(text), out, log), log::toString);
        FunctionInfo info = new FunctionInfo();
        assertEquals(CUDA_SUCCESS, backend.function(out.get(LONG, 0), "fetch", info));
        return info.handle();
    }

    private int launch(long kernel, long object, long in, long result) throws Exception {
        MemorySegment params = arena.allocate(24, 8);
        params.set(LONG, 0, object);
        params.set(LONG, 8, in);
        params.set(LONG, 16, result);
        assertEquals(CUDA_SUCCESS, backend.launch(kernel, 1, 1, 1, POINTS, 1, 1, 0, 0, 0, params,
            MemorySegment.NULL.reinterpret(0)));
        return finish();
    }

    @Test
    void shouldRefuseDescriptorsThatCudaRefuses() {
        long memory = allocate(4096);
        int real = CUarray_format.CU_AD_FORMAT_FLOAT;
        reads(1, 0, 0);
        ofLinear(memory, real, 1, 4096);
        assertEquals(CUDA_SUCCESS, create());
        ofLinear(memory + 4, real, 1, 1024);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "aligned to less than TEXTURE_ALIGNMENT");
        ofLinear(memory, real, 1, 8192);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "beyond the allocation");
        ofLinear(memory, real, 3, 4096);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "three channels");
        ofLinear(memory, real, 1, 3);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "no whole texel");
        ofPitch(memory, real, 16, 8, 128);
        assertEquals(CUDA_SUCCESS, create());
        ofPitch(memory, real, 16, 8, 100);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "pitch aligned to less than TEXTURE_PITCH_ALIGNMENT");
        ofPitch(memory, real, 33, 8, 128);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "rows longer than the pitch");
        ofPitch(memory, real, 32, 33, 128);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "rows beyond the allocation");
        ofPitch(memory, real, Long.MIN_VALUE, 1, 128);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create());
        ofPitch(memory, real, 1, Long.MAX_VALUE, 128);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create());
        ofArray(99);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "no array");
        ofArray(array(16, 8, 0, CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1, 0));
        reads(4, 0, 0);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "address mode");
        reads(1, 2, 0);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "filter");
        reads(1, 0, 1 << 30);
        assertEquals(CUDA_ERROR_INVALID_VALUE, create(), "flag");
        reads(1, 1, READ_AS_INTEGER);
        assertEquals(CUDA_ERROR_NOT_SUPPORTED, create(), "integers have no linear filter");
    }

    @Test
    void shouldTakeOnlyViewsThatFit() {
        long layers = array(16, 8, 6, CUarray_format.CU_AD_FORMAT_FLOAT, 1, ArrayMemory.LAYERED);
        ofArray(layers);
        reads(1, 0, 0);
        int words = CUresourceViewFormat.CU_RES_VIEW_FORMAT_UINT_4X8;
        views(words, 16, 8, 6, 2, 5);
        assertEquals(CUDA_SUCCESS, createWithView());
        views(CUresourceViewFormat.CU_RES_VIEW_FORMAT_NONE, 16, 8, 6, 0, 5);
        assertEquals(CUDA_SUCCESS, createWithView());
        views(words, 16, 8, 6, 2, 6);
        assertEquals(CUDA_ERROR_INVALID_VALUE, createWithView(), "a layer too many");
        views(words, 16, 8, 6, 3, 2);
        assertEquals(CUDA_ERROR_INVALID_VALUE, createWithView(), "no layer");
        views(words, 8, 8, 6, 0, 5);
        assertEquals(CUDA_ERROR_INVALID_VALUE, createWithView(), "another width");
        views(CUresourceViewFormat.CU_RES_VIEW_FORMAT_UINT_2X32, 16, 8, 6, 0, 5);
        assertEquals(CUDA_ERROR_INVALID_VALUE, createWithView(), "another size of a texel");
        views(CUresourceViewFormat.CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 16, 8, 6, 0, 5);
        assertEquals(CUDA_ERROR_NOT_SUPPORTED, createWithView());
        ofLinear(allocate(4096), CUarray_format.CU_AD_FORMAT_FLOAT, 1, 4096);
        views(words, 1024, 1, 0, 0, 0);
        assertEquals(CUDA_ERROR_INVALID_VALUE, createWithView(), "a view of linear memory");
    }

    @Test
    void shouldMakeSurfacesOnlyOfArrays() {
        for (int flags : new int[] {0, ArrayMemory.SURFACE_LDST}) {
            ofArray(array(16, 8, 0, CUarray_format.CU_AD_FORMAT_FLOAT, 1, flags));
            assertEquals(CUDA_SUCCESS, backend.arrays().createSurface(out, resource));
            assertEquals(CUDA_SUCCESS, backend.driver().cuSurfObjectDestroy(out.get(LONG, 0)));
        }
        ofLinear(allocate(4096), CUarray_format.CU_AD_FORMAT_FLOAT, 1, 4096);
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.arrays().createSurface(out, resource));
    }

    @Test
    void shouldForgetDestroyedObjectsAndThoseOfDestroyedContexts() throws Exception {
        ofArray(array(16, 8, 0, CUarray_format.CU_AD_FORMAT_FLOAT, 1, 0));
        reads(1, 0, 0);
        assertEquals(CUDA_SUCCESS, create());
        long first = out.get(LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.driver().cuTexObjectDestroy(first));
        assertEquals(CUDA_SUCCESS, finish());
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuTexObjectDestroy(first));
        assertEquals(CUDA_SUCCESS, create());
        assertNotEquals(first, out.get(LONG, 0));
        long second = out.get(LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.createContext(0, 0, false, out));
        long other = out.get(LONG, 0);
        assertEquals(CUDA_SUCCESS, backend.destroyContext(context));
        assertEquals(CUDA_SUCCESS, backend.setCurrent(other));
        assertEquals(CUDA_ERROR_INVALID_VALUE, backend.driver().cuTexObjectDestroy(second));
    }

    // Descriptors of a hostile guest: a fetch returns texels of its resource or the border, or faults.
    @Test
    void shouldReadOnlyTheResourceForAnyDescriptor() throws Exception {
        Random random = new Random(2026);
        String[] instructions = {"tex.1d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%f0}];",
            "tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%f0, %f1}];",
            "tex.3d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%f0, %f1, %f2, %f2}];",
            "cvt.rzi.s32.f32 %r5, %f3; tex.a2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%r5, %f0, %f1, %f1}];",
            "tex.cube.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%f0, %f1, %f2, %f2}];",
            "cvt.rzi.s32.f32 %r5, %f3; tex.acube.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%r5, %f0, %f1, %f2}];",
            "cvt.rzi.s32.f32 %r5, %f0; tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%d0, {%r5}];",
            "tex.level.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%d0, {%f0, %f1}], %f3;"};
        long[] kernels = new long[instructions.length];
        for (int i = 0; i < kernels.length; i++) {
            kernels[i] = kernel(instructions[i]);
        }
        int tag = 0x41414141;
        // Memory around the resources has other bytes than the resources.
        long memory = allocate(3 << 20);
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD32Async(memory, 0x77777777, (3 << 20) / 4, 0));
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD32Async(memory + (1 << 20), tag, (1 << 20) / 4, 0));
        int created = 0;
        int fetched = 0;
        long in = allocate(16L * POINTS);
        long result = allocate(16L * POINTS);
        for (int i = 0; i < 3000; i++) {
            long address = memory + (1 << 20) + (random.nextInt(8) == 0 ? random.nextInt(-5000, 5000) | 4 : 0);
            int format = random.nextBoolean() ? CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32
                : new int[] {1, 2, 3, 8, 9, 10, 16, 32, 0xc0, 0, -1}[random.nextInt(11)];
            if (random.nextBoolean()) {
                ofLinear(address, format, odd(random, 4), random.nextBoolean() ? 1 << random.nextInt(21)
                    : random.nextLong());
            } else {
                ofPitch(address, format, number(random, 700), number(random, 256), 32L * number(random, 128));
            }
            reads(random.nextInt(8) == 0 ? random.nextInt() : random.nextInt(4), random.nextInt(2),
                random.nextInt(4) == 0 ? random.nextInt(128) : READ_AS_INTEGER | random.nextInt(2) * NORMALIZED);
            texture.set(INT, CUDA_TEXTURE_DESC.MIPMAP_FILTER_MODE_OFFSET, random.nextInt(2));
            for (int k = 0; k < 4; k++) {
                texture.set(INT, CUDA_TEXTURE_DESC.BORDER_COLOR_OFFSET + 4L * k, tag);
                texture.set(INT, CUDA_TEXTURE_DESC.MIPMAP_LEVEL_BIAS_OFFSET + 4L * Math.min(k, 2), random.nextInt());
            }
            if (create() != CUDA_SUCCESS) {
                continue;
            }
            created++;
            long object = out.get(LONG, 0);
            MemorySegment points = arena.allocate(16L * POINTS, 8);
            for (int k = 0; k < 4 * POINTS; k++) {
                points.set(ValueLayout.JAVA_FLOAT, 4L * k, random.nextInt(4) == 0
                    ? Float.intBitsToFloat(random.nextInt()) : random.nextFloat() * 2000 - 500);
            }
            assertEquals(CUDA_SUCCESS, backend.copyHtoD(in, points, 0));
            boolean isWords = resource.get(INT, 0) == CUresourcetype.CU_RESOURCE_TYPE_LINEAR
                ? resource.get(INT, CUDA_RESOURCE_DESC.RES_LINEAR_FORMAT_OFFSET) == 3
                : resource.get(INT, CUDA_RESOURCE_DESC.RES_PITCH2_D_FORMAT_OFFSET) == 3;
            int kernel = resource.get(INT, 0) == CUresourcetype.CU_RESOURCE_TYPE_LINEAR ? 6
                : new int[] {0, 1, 7}[random.nextInt(3)];
            int error = launch(kernels[kernel], object, in, result);
            assertEquals(CUDA_SUCCESS, error, "a fetch of the resource's shape");
            MemorySegment values = arena.allocate(16L * POINTS, 8);
            assertEquals(CUDA_SUCCESS, backend.copyDtoH(values, result, 0));
            assertEquals(CUDA_SUCCESS, finish());
            for (int k = 0; isWords && k < POINTS; k++) {
                int word = values.get(INT, 16L * k);
                assertTrue(word == tag || word == 0, "a word of the resource: 0x" + Integer.toHexString(word));
                fetched += word == tag ? 1 : 0;
            }
        }
        assertTrue(created > 300 && fetched > 3000, "created=" + created + " fetched=" + fetched);
        // A fetch of another shape ends the context, so it comes last.
        assertEquals(CUDA_SUCCESS, backend.driver().cuMemsetD32Async(in, 0, 4L * POINTS, 0));
        ofArray(array(16, 8, 0, CUarray_format.CU_AD_FORMAT_FLOAT, 1, 0));
        reads(1, 0, 0);
        assertEquals(CUDA_SUCCESS, create());
        assertEquals(CUDA_ERROR_NOT_SUPPORTED, launch(kernels[2], out.get(LONG, 0), in, result));
    }

    private static long number(Random random, int most) {
        return random.nextInt(10) == 0 ? random.nextLong() : random.nextInt(1, most);
    }

    private static int odd(Random random, int most) {
        return random.nextInt(4) == 0 ? random.nextInt() : 1 << random.nextInt(2 + most / 4);
    }
}
