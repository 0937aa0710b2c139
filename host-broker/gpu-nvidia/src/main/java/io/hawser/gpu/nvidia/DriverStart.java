package io.hawser.gpu.nvidia;

import static io.hawser.cuda.generated.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
import static io.hawser.cuda.generated.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;

import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.generated.CudaNative;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Set;
import java.util.TreeSet;

/** The first calls of the driver in a process. */
final class DriverStart {
    private static final Logger LOG = System.getLogger(DriverStart.class.getName());
    /** CUDA 12.4, the first version whose driver reports a kernel's parameters; in the form of cuDriverGetVersion. */
    private static final int LEAST_VERSION = 12040;

    private static final String FORCED_PTX = "CUDA_FORCE_PTX_JIT"; // for NVIDIA's driver

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

    /** The architectures of the GPUs, as 90 for sm_90; empty when the driver compiles all PTX itself. */
    static Set<Integer> architectures(int devices) {
        if (!System.getenv().getOrDefault(FORCED_PTX, "0").equals("0")) {
            return Set.of();
        }
        Set<Integer> architectures = new TreeSet<>();
        for (int ordinal = 0; ordinal < devices; ordinal++) {
            int number = ordinal;
            int device = Natives.number(out -> CudaNative.cuDeviceGet(out, number), -1);
            int major = NvidiaBackend.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
            int minor = NvidiaBackend.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
            if (major == 0) {
                return Set.of();
            }
            architectures.add(major * 10 + minor);
        }
        return architectures;
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
