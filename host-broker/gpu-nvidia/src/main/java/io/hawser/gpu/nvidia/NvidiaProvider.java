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
        return Files.exists(KERNEL_DRIVER) && NativeLibrary.isPresent(LIBRARY);
    }

    @Override
    public GpuBackend open(BackendOptions options) {
        if (!Files.exists(KERNEL_DRIVER)) {
            throw new IllegalStateException("no NVIDIA GPU: the kernel driver's " + KERNEL_DRIVER + " is missing");
        }
        return NvidiaBackend.open();
    }
}
