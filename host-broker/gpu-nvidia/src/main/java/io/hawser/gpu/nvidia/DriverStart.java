package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** The first calls of the driver in a process. */
final class DriverStart {
    private static final Logger LOG = System.getLogger(DriverStart.class.getName());
    /** CUDA 12.4, the first version whose driver reports a kernel's parameters; in the form of cuDriverGetVersion. */
    private static final int LEAST_VERSION = 12040;

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
     * has taken memory ({@link AddressRoom}). A context must be current.
     *
     * @return the address of a variable of 8 bytes at its beginning; 0 on failure: then sessions with variables work,
     *     but cannot move.
     */
    static long anchor() {
        NvidiaVariablePlaces.Fillers.Filler anchor = new NvidiaVariablePlaces.DriverFillers().load(Long.BYTES);
        return anchor == null ? 0 : anchor.address();
    }
}
