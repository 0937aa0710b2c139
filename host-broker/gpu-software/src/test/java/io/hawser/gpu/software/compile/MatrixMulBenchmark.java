package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.CtaSlot;
import io.hawser.gpu.software.exec.GlobalMemory;
import io.hawser.gpu.software.exec.KernelLaunch;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Times the tiled f32 matrix product of kernels.cu: {@code MatrixMulBenchmark [n [host threads [repetitions]]]}. Prints
 * wall and processor time, and compares results with the host's. Run it on the test class path with -XX:-ClipInlining.
 */
final class MatrixMulBenchmark {
    private MatrixMulBenchmark() {
    }

    private static int argument(String[] args, int index, int otherwise) {
        return args.length > index ? Integer.parseInt(args[index]) : otherwise;
    }

    public static void main(String[] args) throws Exception {
        int n = argument(args, 0, 1024);
        int hostThreads = argument(args, 1, Runtime.getRuntime().availableProcessors());
        int repetitions = argument(args, 2, 3);
        GlobalMemory memory = GlobalMemory.reserve(1L << 30);
        PtxImage image = PtxImage.link(List.of(PtxModule.compile(Device.resource("kernels-sm75.ptx"))));
        long at = memory.base();
        Map<PtxVariable, Long> places = new HashMap<>();
        for (PtxVariable variable : image.variables()) {
            memory.markAllocated(at, 4096);
            places.put(variable, at);
            at += 4096;
        }
        image.place(memory, places);
        long bytes = 4L * n * n;
        long c = at;
        memory.markAllocated(c, 3 * bytes);
        float[][] inputs = new float[2][n * n];
        Random random = new Random(1);
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < n * n; i++) {
                inputs[k][i] = random.nextFloat() - 0.5f;
            }
            MemorySegment.copy(inputs[k], 0, memory.slice(c + (k + 1) * bytes, bytes), ValueLayout.JAVA_FLOAT_UNALIGNED,
                0, n * n);
        }
        for (int tile : new int[] {16, 32}) {
            PtxKernel kernel = image.kernels().get("matrixMul" + tile);
            for (int r = 0; r < repetitions; r++) {
                KernelLaunch launch = new KernelLaunch(n / tile, n / tile, 1, tile, tile, 1, 0,
                    Device.pack(kernel, c, c + bytes, c + 2 * bytes, n), text -> {});
                time(kernel, launch, memory, n, tile, hostThreads);
            }
            check(memory.slice(c, bytes), inputs, n);
        }
    }

    private static void time(PtxKernel kernel, KernelLaunch launch, GlobalMemory memory, int n, int tile,
        int hostThreads)
        throws InterruptedException {
        int side = n / tile;
        AtomicInteger next = new AtomicInteger();
        AtomicLong processorNs = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        long start = System.nanoTime();
        for (int k = 0; k < hostThreads; k++) {
            Thread thread = new Thread(() -> {
                CtaSlot slot = new CtaSlot(memory);
                for (int i = next.getAndIncrement(); i < side * side; i = next.getAndIncrement()) {
                    kernel.runCta(launch, i % side, i / side, 0, slot);
                }
                processorNs.addAndGet(ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime());
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.printf("matrixMul%d n=%d: %.3f s, processor %.3f s on %d threads%n", tile, n,
            (System.nanoTime() - start) / 1e9, processorNs.get() / 1e9, hostThreads);
    }

    private static void check(MemorySegment got, float[][] inputs, int n) {
        Random random = new Random(2);
        for (int k = 0; k < 200; k++) {
            int row = random.nextInt(n);
            int column = random.nextInt(n);
            float sum = 0;
            for (int i = 0; i < n; i++) {
                sum = Math.fma(inputs[0][row * n + i], inputs[1][i * n + column], sum);
            }
            if (sum != got.getAtIndex(ValueLayout.JAVA_FLOAT_UNALIGNED, (long) row * n + column)) {
                throw new AssertionError("result must be exact: row=" + row + " column=" + column);
            }
        }
    }
}
