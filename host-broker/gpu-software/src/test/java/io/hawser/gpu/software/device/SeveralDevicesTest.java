package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.FunctionInfo;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.gpu.software.SoftwareProvider;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Several software GPUs, and libraries, which belong to no context. */
class SeveralDevicesTest {
    private static final long MEMORY_BYTES = 64 << 20;
    private static final String PTX = """
        .version 8.0
        .target sm_75
        .address_size 64
        .global .align 4 .u32 counter = 5;
        .visible .entry count() {
            .reg .u32 %r<2>;
            ld.global.u32 %r0, [counter];
            add.u32 %r0, %r0, 1;
            st.global.u32 [counter], %r0;
            ret;
        }
        """;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64, 8);
    private SoftwareBackend backend;
    private CudaDriver driver;
    private long first;
    private long second;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(MEMORY_BYTES, 2, 0, 1);
        driver = backend.driver();
        first = context(0);
        second = context(1);
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private long context(int device) {
        ok(backend.createContext(device, 0, true, out));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private static void ok(int result) {
        assertEquals(CUDA_SUCCESS, result);
    }

    private long library() {
        StringBuilder log = new StringBuilder();
        MemorySegment text = arena.allocateFrom(PTX, StandardCharsets.US_ASCII);
        assertEquals(CUDA_SUCCESS, backend.loadLibrary(text, out, log), log::toString);
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private int counter(long library) {
        ok(backend.global(library, "counter", out));
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        MemorySegment value = arena.allocate(4, 4);
        ok(backend.copyDtoH(value, address, 0));
        return value.get(ValueLayout.JAVA_INT, 0);
    }

    private void launch(long function) {
        ok(backend.launch(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, MemorySegment.NULL, MemorySegment.NULL));
    }

    @Test
    void shouldGiveALibraryVariablesInEachContext() {
        ok(backend.setCurrent(first));
        long library = library();
        FunctionInfo count = new FunctionInfo();
        ok(backend.function(library, "count", count));
        launch(count.handle());
        launch(count.handle());
        ok(backend.setCurrent(second));
        launch(count.handle());
        assertEquals(6, counter(library));
        ok(backend.setCurrent(first));
        assertEquals(7, counter(library));
        assertEquals(List.of("count"), backend.functionNames(library));
        ok(backend.unloadImage(library));
        assertEquals(CUDA_ERROR_INVALID_HANDLE, backend.unloadImage(library));
        assertEquals(CUDA_ERROR_INVALID_HANDLE, backend.launch(count.handle(), 1, 1, 1, 1, 1, 1, 0, 0, 0,
            MemorySegment.NULL, MemorySegment.NULL));
    }

    @Test
    void shouldMakeALibraryNewInAContextThatWasReset() {
        ok(backend.setCurrent(first));
        long library = library();
        FunctionInfo count = new FunctionInfo();
        ok(backend.function(library, "count", count));
        launch(count.handle());
        assertEquals(6, counter(library));
        ok(backend.destroyContext(first));
        first = context(0);
        ok(backend.setCurrent(first));
        assertEquals(5, counter(library));
        ok(backend.function(library, "count", count));
        launch(count.handle());
        assertEquals(6, counter(library));
    }

    @Test
    void shouldRefuseALibraryThatIsNone() {
        ok(backend.setCurrent(first));
        assertNotEquals(CUDA_SUCCESS, backend.loadLibrary(arena.allocateFrom("no ptx"), out, new StringBuilder()));
    }

    @Test
    void shouldGiveEachDeviceItsPartOfTheMemory() {
        long part = MEMORY_BYTES / 2;
        ok(backend.setCurrent(second));
        assertEquals(CUDA_ERROR_OUT_OF_MEMORY, driver.cuMemAlloc_v2(out, part + 512));
        ok(driver.cuMemAlloc_v2(out, part - 4096));
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        assertEquals(CUDA_ERROR_OUT_OF_MEMORY, driver.cuMemAlloc_v2(out, 8192));
        ok(driver.cuMemGetInfo_v2(out, out.asSlice(8)));
        assertEquals(4096, out.get(ValueLayout.JAVA_LONG, 0));
        assertEquals(part, out.get(ValueLayout.JAVA_LONG, 8));
        ok(backend.setCurrent(first));
        ok(driver.cuMemAlloc_v2(out, 8192));
        ok(driver.cuMemFree_v2(out.get(ValueLayout.JAVA_LONG, 0)));
        ok(driver.cuMemFree_v2(address)); // while another device's context is current
        ok(backend.setCurrent(second));
        ok(driver.cuMemGetInfo_v2(out, out.asSlice(8)));
        assertEquals(part, out.get(ValueLayout.JAVA_LONG, 0));
    }

    @Test
    void shouldAnswerForPeersAsCudaDoes() {
        ok(backend.setCurrent(first));
        assertEquals(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, driver.cuCtxDisablePeerAccess(second));
        assertEquals(CUDA_ERROR_INVALID_VALUE, driver.cuCtxEnablePeerAccess(second, 1));
        assertEquals(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, driver.cuCtxEnablePeerAccess(first, 0));
        assertEquals(CUDA_ERROR_INVALID_CONTEXT, driver.cuCtxEnablePeerAccess(12345, 0));
        ok(driver.cuCtxEnablePeerAccess(second, 0));
        assertEquals(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, driver.cuCtxEnablePeerAccess(second, 0));
        ok(driver.cuCtxDisablePeerAccess(second));
        ok(backend.peerAttribute(0, 1, 0, out));
        assertEquals(1, out.get(ValueLayout.JAVA_INT, 0));
    }

    @Test
    void shouldOfferTheChosenOnesInTheirOrder() {
        List<String> chosen = List.of(SoftwareBackend.uuid(2), SoftwareBackend.uuid(0));
        try (GpuBackend some = new SoftwareProvider().open(new BackendOptions(3 << 20, 1, 3, chosen));
            GpuBackend all = new SoftwareProvider().open(new BackendOptions(3 << 20, 1, 3, List.of()))) {
            assertEquals(3, all.deviceCount());
            assertEquals(2, some.deviceCount());
            assertEquals(uuid(all, 2), uuid(some, 0));
            assertEquals(uuid(all, 0), uuid(some, 1));
            assertNotEquals(uuid(all, 0), uuid(all, 1));
        }
        BackendOptions none = new BackendOptions(0, 1, 2, List.of("00000000-0000-0000-0000-000000000000"));
        assertThrows(IllegalStateException.class, () -> new SoftwareProvider().open(none));
    }

    private String uuid(GpuBackend of, int ordinal) {
        MemorySegment info = arena.allocate(HwsDeviceInfo.BYTES, 8);
        ok(of.deviceInfo(ordinal, info));
        return HexFormat.of().formatHex(info.asSlice(
            HwsDeviceInfo.UUID_OFFSET, 16).toArray(ValueLayout.JAVA_BYTE));
    }
}
