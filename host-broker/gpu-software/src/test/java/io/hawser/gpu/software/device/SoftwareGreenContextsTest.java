package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.backend.GreenContexts;
import io.hawser.cuda.backend.GreenContexts.Split;
import io.hawser.cuda.backend.GreenContexts.Whole;
import io.hawser.cuda.generated.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SoftwareGreenContextsTest {
    private static final int PROCESSORS = 7;
    private static final Whole DEVICE = new Whole(0, 0);
    private static final int[] FIRST = {0};

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64, 8);
    private SoftwareBackend backend;
    private CudaDriver driver;
    private GreenContexts greens;
    private long primary;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, PROCESSORS);
        driver = backend.driver();
        greens = backend.greenContexts();
        ok(backend.createContext(0, 0, true, out));
        primary = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.setCurrent(primary));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private static void ok(int result) {
        assertEquals(CUDA_SUCCESS, result);
    }

    private int word(int index) {
        return out.getAtIndex(ValueLayout.JAVA_INT, index);
    }

    private long green(Split split, int... parts) {
        ok(greens.create(primary, split, parts, out));
        return out.get(ValueLayout.JAVA_LONG, 0);
    }

    private int sizeOf(long green) {
        ok(greens.resource(new Whole(0, green), out));
        return word(0);
    }

    @Test
    void shouldDivideIntoEqualGroupsAndTheRest() {
        ok(greens.split(new Split(DEVICE, 0, 3, 0), out));
        assertEquals(1, word(6), "groups of 4, the next multiple of 2");
        assertEquals(4, word(0));
        assertEquals(3, word(3), "the rest");
        ok(greens.split(new Split(DEVICE, 1, 3, 0), out)); // each processor by itself
        assertEquals(2, word(6));
        assertEquals(3, word(0));
        assertEquals(1, word(3), "the rest");
        ok(greens.split(new Split(DEVICE, 0, 0, 2), out));
        assertEquals(2, word(6), "no more groups than wanted");
        assertEquals(3, word(3), "the rest");
    }

    @Test
    void shouldRefuseImpossibleDivisions() {
        assertEquals(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, greens.split(new Split(DEVICE, 0, 7, 0), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, greens.split(new Split(DEVICE, 0, 8, 0), out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, greens.split(new Split(DEVICE, 0, -1, 0), out));
        Split split = new Split(DEVICE, 0, 2, 3);
        assertEquals(CUDA_ERROR_INVALID_VALUE, greens.create(primary, split, new int[] {4}, out));
        assertEquals(CUDA_ERROR_INVALID_VALUE, greens.create(primary, split, new int[] {-1}, out));
        assertEquals(CUDA_ERROR_INVALID_CONTEXT, greens.create(0, split, FIRST, out));
        assertEquals(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            greens.create(primary, split, new int[] {0, 1, 2, 3, 0}, out), "more than there are");
    }

    @Test
    void shouldGiveAContextItsParts() {
        Split split = new Split(DEVICE, 0, 2, 3);
        assertEquals(2, sizeOf(green(split, 0)));
        assertEquals(4, sizeOf(green(split, 0, 2)));
        assertEquals(1, sizeOf(green(split, 3)), "the rest");
        long whole = green(new Split(DEVICE, 0, 0, 0));
        assertEquals(PROCESSORS, sizeOf(whole));
        long inner = green(new Split(new Whole(0, whole), 0, 4, 1), 0);
        assertEquals(4, sizeOf(inner), "a part of a part");
    }

    @Test
    void shouldWaitForGreenContextsOfThePrimaryContext() throws InterruptedException {
        long green = green(new Split(DEVICE, 0, 2, 1), 0);
        ok(backend.setCurrent(green));
        ok(driver.cuStreamCreateWithPriority(out, 1, 0));
        long stream = out.get(ValueLayout.JAVA_LONG, 0);
        CountDownLatch released = new CountDownLatch(1);
        ok(backend.hostFunction(stream, () -> await(released)));
        AtomicBoolean reached = new AtomicBoolean();
        CountDownLatch done = new CountDownLatch(1);
        ok(backend.whenContextReached(primary, status -> {
            reached.set(true);
            done.countDown();
        }));
        assertFalse(reached.get(), "the green context has work");
        released.countDown();
        assertTrue(done.await(60, TimeUnit.SECONDS));
    }

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(60, TimeUnit.SECONDS));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void shouldKeepMemoryOfAnEndedGreenContext() {
        long green = green(new Split(DEVICE, 0, 2, 1), 0);
        ok(backend.setCurrent(green));
        ok(driver.cuMemAlloc_v2(out, 4096));
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        ok(driver.cuMemGetInfo_v2(out, out.asSlice(8)));
        long free = out.get(ValueLayout.JAVA_LONG, 0);
        ok(backend.destroyContext(green));
        assertEquals(CUDA_ERROR_INVALID_CONTEXT, backend.setCurrent(green));
        ok(backend.setCurrent(primary));
        ok(driver.cuMemGetInfo_v2(out, out.asSlice(8)));
        assertEquals(free, out.get(ValueLayout.JAVA_LONG, 0));
        ok(driver.cuMemFree_v2(address));
    }
}
