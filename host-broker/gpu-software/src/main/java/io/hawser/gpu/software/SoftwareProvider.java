package io.hawser.gpu.software;

import com.sun.management.OperatingSystemMXBean;
import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import io.hawser.cuda.backend.ProcessCheckpoints;
import io.hawser.gpu.software.device.SoftwareBackend;
import java.lang.management.ManagementFactory;
import java.util.stream.IntStream;

/** Opens the software GPU, which every machine has. */
public final class SoftwareProvider implements GpuBackendProvider {
    /** The device's memory is the machine's divided by this. The system commits a page at its first write. */
    private static final int MEMORY_DIVISOR = 2;

    @Override
    public String name() {
        return "software";
    }

    @Override
    public boolean isAvailable() {
        return true;
    }

    @Override
    public GpuBackend open(BackendOptions options) {
        OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long bytes = machine.getTotalMemorySize() / MEMORY_DIVISOR;
        if (options.memoryBytes() != 0) {
            bytes = Math.min(bytes, options.memoryBytes());
        }
        int all = Runtime.getRuntime().availableProcessors();
        int processors = options.threads() == 0 ? all : Math.min(all, options.threads());
        int[] numbers = numbers(options);
        return new SoftwareBackend(bytes / options.devices() * numbers.length, processors, numbers);
    }

    /** All state of this GPU is in host memory already, so nothing moves. */
    @Override
    public ProcessCheckpoints checkpoints() {
        return new ProcessCheckpoints() {
            @Override
            public Outcome checkpoint(int pid, int timeoutMs) {
                return new Outcome(0, State.CHECKPOINTED);
            }

            @Override
            public Outcome restore(int pid) {
                return new Outcome(0, State.RUNNING);
            }
        };
    }

    private static int[] numbers(BackendOptions options) {
        int[] all = IntStream.range(0, options.devices()).toArray();
        if (options.chosen().isEmpty()) {
            return all;
        }
        return options.chosen().stream().mapToInt(uuid -> IntStream.of(all)
            .filter(number -> SoftwareBackend.uuid(number).equalsIgnoreCase(uuid)).findFirst()
            .orElseThrow(() -> new IllegalStateException("no software GPU has this UUID: " + uuid))).toArray();
    }
}
