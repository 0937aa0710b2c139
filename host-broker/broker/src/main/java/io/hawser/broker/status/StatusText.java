package io.hawser.broker.status;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.Printable;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.shm.wire.RecordLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToLongBiFunction;
import org.eclipse.microprofile.config.ConfigProvider;

/**
 * Builds the status of a vGPU from published state: one line for each item, fields separated by tabs. A guest sees its
 * own vGPU's sessions and figures of that vGPU's GPUs, and nothing of other tenants.
 */
public final class StatusText implements StatusSource {
    /** Longest text in bytes, which the broker sends in its own record. */
    public static final int MAX_BYTES = RecordLayout.MAX_STATUS_BYTES;
    /** Room for the line "more" with a number of sessions. */
    private static final int MORE_BYTES = 32;
    private static final int MAX_NAME = 64;
    private static final String UNKNOWN = "-";
    private static final String VERSION = ConfigProvider.getConfig()
        .getOptionalValue("quarkus.application.version", String.class).orElse("development");

    private final VgpuTable vgpus;
    private final SessionRegistry sessions;
    private final Supplier<List<Device>> devices;
    private final Function<String, GpuReading> readings;
    private final ToLongBiFunction<String, String> usedBytes;

    /**
     * Makes a source that reads published state.
     *
     * @param devices the GPUs; empty before the broker knows them.
     * @param readings measured figures of a GPU, by its UUID.
     * @param usedBytes device memory that a vGPU holds on a GPU, by name and UUID.
     */
    public StatusText(VgpuTable vgpus, SessionRegistry sessions, Supplier<List<Device>> devices,
        Function<String, GpuReading> readings, ToLongBiFunction<String, String> usedBytes) {
        this.vgpus = vgpus;
        this.sessions = sessions;
        this.devices = devices;
        this.readings = readings;
        this.usedBytes = usedBytes;
    }

    @Override
    public String of(String name, int maxBytes) {
        StringBuilder text = new StringBuilder("status 1\n");
        line(text, "broker", VERSION);
        Optional<VgpuView> found = vgpus.find(name);
        if (found.isEmpty()) {
            return text.toString();
        }
        Vgpu vgpu = found.get().vgpu();
        line(text, "vgpu", name, vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().name().toLowerCase(Locale.ROOT),
            vgpu.maxSessions());
        int index = 0;
        for (String uuid : found.get().placedGpus()) {
            gpu(text, index++, uuid, vgpu);
        }
        sessions(text, name, maxBytes);
        return text.toString();
    }

    private void gpu(StringBuilder text, int index, String uuid, Vgpu vgpu) {
        Optional<Device> device = devices.get().stream().filter(d -> d.uuid().equals(uuid)).findFirst();
        if (device.isEmpty()) {
            return; // the GPU disappeared after the vGPU's placement
        }
        long total = vgpu.reserves() ? Math.min(vgpu.memoryBytes(), device.get().totalBytes())
            : device.get().totalBytes();
        GpuReading reading = readings.apply(uuid);
        line(text, "gpu", index, Printable.text(device.get().name(), MAX_NAME), uuid, total,
            usedBytes.applyAsLong(vgpu.name(), uuid), valueOf(reading.utilizationPercent()),
            valueOf(reading.temperatureCelsius()), valueOf(reading.powerWatts()));
    }

    private static Object valueOf(Number value) {
        return value == null ? UNKNOWN : Math.round(value.doubleValue());
    }

    private void sessions(StringBuilder text, String vgpu, int maxBytes) {
        int room = maxBytes - text.toString().getBytes(StandardCharsets.UTF_8).length - MORE_BYTES;
        int left = 0;
        for (SessionView session : sessions.list()) {
            if (!session.guest().vgpu().equals(vgpu)) {
                continue;
            }
            StringBuilder line = new StringBuilder();
            line(line, "session", session.id(), session.guest().pid(), name(session.guest().program()),
                name(session.guest().host()), session.guest().carrier().label(),
                session.state().name().toLowerCase(Locale.ROOT), session.statistics().deviceBytes(),
                session.statistics().kernels(), session.statistics().roundTrips(),
                session.started().getEpochSecond());
            int bytes = line.toString().getBytes(StandardCharsets.UTF_8).length;
            if (left > 0 || bytes > room) {
                left++;
            } else {
                room -= bytes;
                text.append(line);
            }
        }
        if (left > 0) {
            line(text, "more", left);
        }
    }

    private static String name(String raw) {
        String text = Printable.text(raw, MAX_NAME);
        return text.isBlank() ? UNKNOWN : text;
    }

    private static void line(StringBuilder text, Object... fields) {
        for (int i = 0; i < fields.length; i++) {
            text.append(i == 0 ? "" : "\t").append(fields[i]);
        }
        text.append('\n');
    }
}
