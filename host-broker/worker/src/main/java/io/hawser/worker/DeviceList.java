package io.hawser.worker;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.HwsDeviceInfo;
import io.hawser.worker.control.WorkerMessage;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Describes the worker's GPUs to the broker, and creates the primary context of the first one for the session. */
final class DeviceList {
    private static final int MAJOR = 75; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    private static final int MINOR = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR

    private DeviceList() {}

    /**
     * Prepares and describes the devices.
     *
     * @param backend the GPU.
     * @param jail description of the worker's jail, in one line for people.
     * @return the message for the broker.
     * @throws IllegalStateException if a device or its context fails; the message has the CUresult.
     */
    static WorkerMessage.Ready ready(GpuBackend backend, String jail) {
        List<WorkerMessage.Device> devices = new ArrayList<>();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ValueLayout.JAVA_LONG);
            for (int ordinal = 0; ordinal < backend.deviceCount(); ordinal++) {
                // Programs begin on device 0. Contexts on other devices would cost memory that most sessions never use.
                if (ordinal == 0) {
                    check("createContext", backend.createContext(ordinal, 0, true, context));
                }
                devices.add(describe(backend, ordinal, arena));
            }
        }
        return new WorkerMessage.Ready(ProcessHandle.current().pid(), backend.name(), jail, devices);
    }

    private static WorkerMessage.Device describe(GpuBackend backend, int ordinal, Arena arena) {
        MemorySegment info = arena.allocate(HwsDeviceInfo.BYTES, Long.BYTES);
        check("deviceInfo", backend.deviceInfo(ordinal, info));
        byte[] uuid = info.asSlice(HwsDeviceInfo.UUID_OFFSET, 2 * Long.BYTES).toArray(ValueLayout.JAVA_BYTE);
        String pci = String.format("%04x:%02x:%02x.0", info.get(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_DOMAIN_OFFSET),
            info.get(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_BUS_OFFSET),
            info.get(ValueLayout.JAVA_INT, HwsDeviceInfo.PCI_DEVICE_OFFSET));
        return new WorkerMessage.Device(name(info), uuidText(uuid),
            info.get(ValueLayout.JAVA_LONG, HwsDeviceInfo.TOTAL_BYTES_OFFSET), pci,
            attribute(info, MAJOR) + "." + attribute(info, MINOR));
    }

    private static String name(MemorySegment info) {
        int length = 0;
        while (length < HwsDeviceInfo.UUID_OFFSET && info.get(ValueLayout.JAVA_BYTE, length) != 0) {
            length++;
        }
        return new String(info.asSlice(0, length).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    private static String uuidText(byte[] uuid) {
        ByteBuffer bits = ByteBuffer.wrap(uuid);
        return new UUID(bits.getLong(), bits.getLong()).toString();
    }

    private static int attribute(MemorySegment info, int attribute) {
        return info.get(ValueLayout.JAVA_INT, HwsDeviceInfo.ATTRIBUTES_OFFSET + (long) attribute * Integer.BYTES);
    }

    private static void check(String what, int result) {
        if (result != 0) {
            throw new IllegalStateException("the GPU does not start: " + what + " CUresult=" + result);
        }
    }
}
