package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The first calls of the driver in a process. */
final class DriverStart {
    private static final Logger LOG = System.getLogger(DriverStart.class.getName());
    /** CUDA 12.4, the first version whose driver reports a kernel's parameters; in the form of cuDriverGetVersion. */
    private static final int LEAST_VERSION = 12040;
    /** The driver lays the variables of all modules into pieces of 2 MiB, and gives back a piece without a variable. */
    private static final String ANCHOR = """
        .version 6.0
        .target sm_60
        .address_size 64
        .visible .global .align 8 .b8 hawser_anchor[8];
        """;

    private DriverStart() {}

    /** Starts the driver, and returns the number of GPUs, at least 1. */
    static int devices() {
        int version = Natives.number(CudaNative::cuDriverGetVersion, 0);
        if (version > 0 && version < LEAST_VERSION) {
            throw new IllegalStateException("the NVIDIA driver is too old: it supports CUDA " + cuda(version)
                + ", and must support CUDA " + cuda(LEAST_VERSION) + " (version 550) or newer");
        }
        Natives.check("cuInit", CudaNative.cuInit(0));
        int count = Natives.number(CudaNative::cuDeviceGetCount, 0);
        if (count == 0) {
            throw new IllegalStateException("no NVIDIA GPU: the driver shows none (CUDA_VISIBLE_DEVICES?)");
        }
        LOG.log(Level.INFO, "NVIDIA driver for CUDA {0}, {1} device(s)", cuda(version), count);
        if (NcclBackend.mayCommunicate()) {
            NvidiaNccl.openNvml();
        }
        return count;
    }

    private static String cuda(int version) {
        return version / 1000 + "." + version % 1000 / 10;
    }

    /**
     * Keeps the first piece of memory for variables, which lies at the same address in each process while nothing else
     * has taken memory ({@link AddressRoom}). A context must be current. Returns 0: without the piece sessions work,
     * but cannot move.
     */
    static int anchorVariables() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment module = arena.allocate(ValueLayout.JAVA_LONG);
            int result = CudaNative.cuModuleLoadDataEx(module, arena.allocateFrom(ANCHOR), 0, MemorySegment.NULL,
                MemorySegment.NULL);
            if (result != 0) {
                LOG.log(Level.INFO, "sessions with variables of device code cannot move: {0}",
                    Natives.errorName(result));
            }
        }
        return 0;
    }
}
