package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import io.hawser.cuda.backend.NativeLibrary;
import io.hawser.cuda.backend.ProcessCheckpoints;
import java.nio.file.Files;
import java.nio.file.Path;

/** Opens the machine's NVIDIA GPUs. */
public final class NvidiaProvider implements GpuBackendProvider {
    static final String LIBRARY = "libcuda.so.1";
    /**
     * Created by the kernel driver. libcuda.so.1 alone proves nothing: it may be Hawser's guest library. The build's
     * training run uses that library on purpose, and names another file.
     */
    private static final Path KERNEL_DRIVER =
        Path.of(System.getProperty("hawser.nvidia.control-file", "/dev/nvidiactl"));

    @Override
    public String name() {
        return "nvidia";
    }

    @Override
    public boolean isAvailable() {
        // An incomplete driver must be reported as an error, instead of selecting the software GPU.
        return Files.exists(KERNEL_DRIVER);
    }

    @Override
    public GpuBackend open(BackendOptions options) {
        requireDriver();
        return NvidiaBackend.open();
    }

    @Override
    public ProcessCheckpoints checkpoints() {
        requireDriver();
        return NvidiaCheckpoints.open();
    }

    private static void requireDriver() {
        if (!Files.exists(KERNEL_DRIVER)) {
            throw new IllegalStateException("no NVIDIA GPU: the kernel driver's " + KERNEL_DRIVER + " is missing");
        }
        if (!NativeLibrary.isPresent(LIBRARY)) {
            throw new IllegalStateException("the NVIDIA driver is not complete: " + LIBRARY
                + " is missing or cannot be loaded (LD_LIBRARY_PATH?)");
        }
    }
}
