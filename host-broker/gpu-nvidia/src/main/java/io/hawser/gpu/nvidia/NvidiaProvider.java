package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.GpuBackendProvider;
import io.hawser.cuda.backend.NativeLibrary;
import java.nio.file.Files;
import java.nio.file.Path;

/** Opens the machine's NVIDIA GPUs. */
public final class NvidiaProvider implements GpuBackendProvider {
    static final String LIBRARY = "libcuda.so.1";
    /** Made by the kernel driver; a guest's libcuda.so.1 of ours alone is no GPU. */
    private static final Path KERNEL_DRIVER = Path.of("/dev/nvidiactl");

    @Override
    public String name() {
        return "nvidia";
    }

    @Override
    public boolean isAvailable() {
        return Files.exists(KERNEL_DRIVER); // half a driver is an error to be told, not a reason for the software GPU
    }

    @Override
    public GpuBackend open(BackendOptions options) {
        if (!Files.exists(KERNEL_DRIVER)) {
            throw new IllegalStateException("no NVIDIA GPU: the kernel driver's " + KERNEL_DRIVER + " is missing");
        }
        if (!NativeLibrary.isPresent(LIBRARY)) {
            throw new IllegalStateException("the NVIDIA driver is not complete: " + LIBRARY
                + " is missing or cannot be loaded (LD_LIBRARY_PATH?)");
        }
        return NvidiaBackend.open();
    }
}
