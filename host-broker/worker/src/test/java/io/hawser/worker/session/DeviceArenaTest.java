package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.backend.VirtualMemory;
import io.hawser.cuda.generated.CUresult;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The access of other devices to slabs. */
class DeviceArenaTest {
    private static final long PAGE = DeviceArena.PAGE_BYTES;
    private static final long BASE = 0x2000_0000_0000L;

    private final List<String> access = new ArrayList<>(); // page, device and flags of each change
    private DeviceArena arena;

    @BeforeEach
    void open() {
        VirtualMemory memory = (VirtualMemory) Proxy.newProxyInstance(VirtualMemory.class.getClassLoader(),
            new Class<?>[] {VirtualMemory.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("reserve")) {
                    ((MemorySegment) arguments[3]).set(ValueLayout.JAVA_LONG, 0, BASE);
                } else if (method.getName().equals("setAccess")) {
                    access.add(((long) arguments[0] - BASE) / PAGE + ":" + arguments[2] + ":" + arguments[3]);
                }
                return method.getReturnType() == boolean.class ? (Object) false : (Object) 0;
            });
        arena = new DeviceArena(memory, new AllocationMap(), MemoryQuota.alone(3, 0));
        arena.window(1, 100 * PAGE);
    }

    private List<String> changes(Runnable action) {
        access.clear();
        action.run();
        return List.copyOf(access);
    }

    @Test
    void shouldGiveSharingDevicesAccessToPresentAndFutureSlabs() {
        assertEquals(List.of("0:1:3"), changes(() -> arena.map(1, BASE, PAGE)));
        assertEquals(List.of("0:0:3", "0:2:3"), changes(() -> arena.share(1, List.of(0, 2))));
        assertEquals(List.of("1:0:3", "1:1:3", "1:2:3"), changes(() -> arena.map(1, BASE + PAGE, PAGE)));
        assertEquals(List.of(), changes(() -> arena.share(1, List.of(0, 2))));
        assertEquals(CUresult.CUDA_ERROR_INVALID_VALUE, arena.share(0, List.of(1)));
    }

    @Test
    void shouldKeepAccessOfSharingDevicesWhenAPeerLosesIt() {
        arena.map(1, BASE, PAGE);
        assertEquals(List.of("0:2:3"), changes(() -> arena.allowPeer(1, 2, true)));
        assertEquals(List.of(), changes(() -> arena.share(1, List.of(2))));
        assertEquals(List.of(), changes(() -> arena.allowPeer(1, 2, false)));
        assertEquals(List.of("1:1:3", "1:2:3"), changes(() -> arena.map(1, BASE + PAGE, PAGE)));
    }

    @Test
    void shouldEndAccessOfAPeer() {
        arena.map(1, BASE, PAGE);
        assertEquals(List.of(), changes(() -> arena.allowPeer(1, 1, true)));
        assertEquals(List.of("0:0:3"), changes(() -> arena.allowPeer(1, 0, true)));
        assertEquals(List.of("0:0:0"), changes(() -> arena.allowPeer(1, 0, false)));
        assertEquals(List.of("1:1:3"), changes(() -> arena.map(1, BASE + PAGE, PAGE)));
    }
}
