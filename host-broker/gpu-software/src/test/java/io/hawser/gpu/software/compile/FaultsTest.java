package io.hawser.gpu.software.compile;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.gpu.software.exec.DeviceFault;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A faulting kernel returns the right error, and the slot stays usable. */
class FaultsTest {
    private Device device;

    @BeforeEach
    void open() throws Exception {
        device = new Device(Device.resource("kernels-sm75.ptx"));
    }

    @AfterEach
    void close() {
        device.close();
    }

    private DeviceFault fault(int expected, String kernel, int block, Object... params) {
        DeviceFault fault = assertThrows(DeviceFault.class, () -> device.launch(kernel, 1, block, params));
        assertEquals(expected, fault.cuResult(), fault.getMessage());
        assertTrue(fault.getMessage().contains("kernel " + kernel), fault.getMessage());
        return fault;
    }

    @Test
    void shouldFaultOutsideOfAllocations() {
        long p = device.allocate(512);
        device.launch("outOfBounds", 1, 1, p, 127);
        fault(700, "outOfBounds", 1, p, 128);
        fault(700, "outOfBounds", 1, p, -1);
        fault(700, "outOfBounds", 1, 0L, 0);
        fault(700, "outOfBounds", 1, Long.MAX_VALUE - 7, 0);
        fault(700, "outOfBounds", 1, device.memory.base() + device.memory.size(), 0);
        device.memory.markFree(p, 512);
        fault(700, "outOfBounds", 1, p, 0);
    }

    @Test
    void shouldFaultOnMisalignedAddresses() {
        DeviceFault fault = fault(716, "misaligned", 1, device.allocate(512));
        int line = Integer.parseInt(fault.getMessage().replaceAll("(?s).*ptxLine=(\\d+).*", "$1"));
        String[] lines = Device.resource("kernels-sm75.ptx").split("\n");
        assertTrue(lines[line - 1].contains("st.global.u32"), lines[line - 1]);
    }

    @Test
    void shouldFaultOutsideOfSharedMemory() {
        long out = device.put(0);
        device.launch("sharedOutOfBounds", 1, 8, out, 5);
        assertEquals(5, device.ints(out, 1)[0]);
        fault(700, "sharedOutOfBounds", 8, out, 8);
        fault(700, "sharedOutOfBounds", 8, out, -1);
    }

    @Test
    void shouldEndDeadlocksWithLaunchFailed() {
        DeviceFault fault = fault(719, "deadlock", 32, device.allocate(512));
        assertTrue(fault.getMessage().contains("deadlock"), fault.getMessage());
        long out = device.put(0);
        device.launch("sharedOutOfBounds", 1, 8, out, 3);
        assertEquals(3, device.ints(out, 1)[0]);
    }

    @Test
    void shouldEndEndlessRecursion() {
        fault(719, "stackOverflow", 1, device.put(0));
    }

    @Test
    @Timeout(300)
    void shouldEndCancelledKernels() throws Exception {
        for (String kernel : new String[] {"endless", "endlessArithmetic"}) {
            CountDownLatch started = new CountDownLatch(1);
            DeviceFault[] seen = new DeviceFault[1];
            long p = device.put(0, 0);
            Thread thread = new Thread(() -> {
                started.countDown();
                try {
                    if (kernel.equals("endless")) {
                        device.launch(kernel, 1, 1, p);
                    } else {
                        device.launch(kernel, 1, 1, p, 1);
                    }
                } catch (DeviceFault e) {
                    seen[0] = e;
                }
            });
            thread.start();
            started.await();
            // The launch appears after the kernel's translation; an earlier cancellation would have no effect.
            while (device.last == null) {
                Thread.onSpinWait();
            }
            device.last.cancel();
            thread.join();
            device.last = null;
            assertEquals(DeviceFault.CANCELLED, seen[0].cuResult());
        }
    }

    @Test
    void shouldFaultOnIndirectCallsToNoFunction() throws Exception {
        String ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.func f(.param .b32 a) { ret; }\n"
            + ".global .u64 keep = f;\n.visible .entry k(.param .u64 to) { .reg .b64 %rd<2>; .param .b32 p;\n"
            + "ld.param.u64 %rd1, [to]; st.param.b32 [p], 1; proto: .callprototype _ (.param .b32 _);\n"
            + "call %rd1, (p), proto; ret; }";
        try (Device d = new Device(ptx)) {
            DeviceFault fault = assertThrows(DeviceFault.class, () -> d.launch("k", 1, 1, 12345L));
            assertEquals(718, fault.cuResult());
        }
    }

    @Test
    void shouldStayExactOverNamedBarriers() {
        long out = device.allocate(128);
        device.launch("namedBarriers", 1, 64, out);
        int[] expected = new int[32];
        for (int lane = 0; lane < 32; lane++) {
            expected[lane] = 600 + 4 * (31 - lane);
        }
        assertArrayEquals(expected, device.ints(out, 32));
    }
}
