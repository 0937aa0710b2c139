package io.hawser.broker.status;

import io.hawser.broker.machine.MathLibraries;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Printable;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.nvml.GpuReading;
import io.hawser.broker.nvml.Sensor;
import io.hawser.broker.nvml.Trait;
import io.hawser.broker.swap.SwapSource;
import io.hawser.broker.vgpu.VgpuTable;
import io.hawser.shm.wire.RecordLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
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
    /** States of a GPU's access to itself, as NVML reports them, and to a GPU of which nothing is known. */
    private static final String NO_PEER = "5555";
    private static final String VERSION = ConfigProvider.getConfig()
        .getOptionalValue("quarkus.application.version", String.class).orElse("development");

    private final VgpuTable vgpus;
    private final Supplier<List<SessionView>> sessions;
    private final Gpus gpus;
    private final List<MathLibraries.Library> libraries;
    private final SwapSource swaps;

    /**
     * Facts about the broker's GPUs.
     *
     * @param devices the GPUs; empty before the broker knows them.
     * @param readings measured figures of a GPU, by its UUID.
     * @param driverVersion of the machine; empty when it is unknown.
     * @param usedBytes device memory that a vGPU holds on a GPU, by name and UUID.
     * @param utilizationPercent of a vGPU, by name.
     */
    public record Gpus(Supplier<List<Device>> devices, Function<String, GpuReading> readings,
        Supplier<String> driverVersion, ToLongBiFunction<String, String> usedBytes,
        ToIntFunction<String> utilizationPercent) {}

    /** Makes a source that reads published state; {@code libraries} are those that workers may open. */
    public StatusText(VgpuTable vgpus, Supplier<List<SessionView>> sessions, Gpus gpus,
        List<MathLibraries.Library> libraries, SwapSource swaps) {
        this.vgpus = vgpus;
        this.sessions = sessions;
        this.gpus = gpus;
        this.libraries = List.copyOf(libraries);
        this.swaps = swaps;
    }

    @Override
    public String of(String name, int maxBytes) {
        StringBuilder text = new StringBuilder("status 1\n");
        line(text, "broker", VERSION);
        String driver = Printable.text(gpus.driverVersion().get(), MAX_NAME);
        line(text, "driver", driver.isBlank() ? UNKNOWN : driver);
        Optional<VgpuView> found = vgpus.find(name);
        if (found.isEmpty()) {
            return text.toString();
        }
        Vgpu vgpu = found.get().vgpu();
        line(text, "vgpu", name, vgpu.memoryBytes(), vgpu.computeShare(), vgpu.mode().name().toLowerCase(Locale.ROOT),
            vgpu.maxSessions());
        if (vgpu.swappable()) {
            SwapInfo swap = swaps.of(name);
            line(text, "swap", swap.residentBytes(), swap.swappedBytes(), swap.swaps(), swap.waitedMs());
        }
        List<String> placed = List.copyOf(found.get().placedGpus());
        for (int i = 0; i < placed.size(); i++) {
            gpu(text, i, placed.get(i), vgpu);
        }
        // The lines of all GPUs come first, since further ones may not fit.
        for (int i = 0; i < placed.size(); i++) {
            traits(text, i, placed, vgpu, maxBytes);
            if (vgpu.mode() == Sharing.EXCLUSIVE) {
                sensors(text, i, placed.get(i), maxBytes);
            }
        }
        for (MathLibraries.Library library : libraries) {
            append(text, List.of("library", name(library.soname()),
                library.version() == null ? UNKNOWN : name(library.version())), maxBytes);
        }
        sessions(text, name, maxBytes);
        return text.toString();
    }

    private Optional<Device> device(String uuid) {
        return gpus.devices().get().stream().filter(d -> d.uuid().equals(uuid)).findFirst();
    }

    private static long totalBytes(Device device, Vgpu vgpu) {
        return vgpu.reserves() ? Math.min(vgpu.memoryBytes(), device.totalBytes()) : device.totalBytes();
    }

    private void gpu(StringBuilder text, int index, String uuid, Vgpu vgpu) {
        Optional<Device> device = device(uuid);
        if (device.isEmpty()) {
            return; // the GPU disappeared after the vGPU's placement
        }
        // The figures of a whole GPU would show a tenant the work of its neighbours.
        boolean alone = vgpu.mode() == Sharing.EXCLUSIVE;
        GpuReading reading = gpus.readings().apply(uuid);
        line(text, "gpu", index, name(device.get().name()), uuid, totalBytes(device.get(), vgpu),
            gpus.usedBytes().applyAsLong(vgpu.name(), uuid),
            alone ? valueOf(reading.utilizationPercent()) : gpus.utilizationPercent().applyAsInt(vgpu.name()),
            valueOf(alone ? reading.temperatureCelsius() : null), valueOf(alone ? reading.powerWatts() : null),
            name(device.get().pciBusId()), name(device.get().computeCapability()));
    }

    private void traits(StringBuilder text, int index, List<String> placed, Vgpu vgpu, int maxBytes) {
        GpuReading reading = gpus.readings().apply(placed.get(index));
        List<Object> fields = new ArrayList<>(List.of("traits", index));
        fields.add(device(placed.get(index)).map(device -> reservedBytes(device, vgpu, reading)).orElse(0L));
        Trait.BEFORE_PEERS.forEach(trait -> fields.add(valueOf(reading.traits().get(trait))));
        StringBuilder peers = new StringBuilder();
        placed.forEach(peer -> peers.append(reading.peers().getOrDefault(peer, NO_PEER)));
        fields.add(peers);
        Trait.BEHIND_PEERS.forEach(trait -> fields.add(valueOf(reading.traits().get(trait))));
        append(text, fields, maxBytes);
    }

    /** Memory of the driver, which NVML counts with a whole GPU. A quota is the tenant's alone. */
    private static long reservedBytes(Device device, Vgpu vgpu, GpuReading reading) {
        boolean whole = totalBytes(device, vgpu) == device.totalBytes() && reading.memoryTotalBytes() != null;
        return whole ? Math.max(0, reading.memoryTotalBytes() - device.totalBytes()) : 0;
    }

    private void sensors(StringBuilder text, int index, String uuid, int maxBytes) {
        Map<Sensor, Long> figures = gpus.readings().apply(uuid).sensors();
        List<Object> fields = new ArrayList<>(List.of("sensors", index));
        for (Sensor sensor : Sensor.values()) {
            fields.add(valueOf(figures.get(sensor)));
        }
        if (!figures.isEmpty()) {
            append(text, fields, maxBytes);
        }
    }

    /** Appends a line of ASCII that fits. The sessions' text keeps room for itself. */
    private static void append(StringBuilder text, List<Object> fields, int maxBytes) {
        StringBuilder line = new StringBuilder();
        line(line, fields.toArray());
        if (text.length() + line.length() + MORE_BYTES <= maxBytes) {
            text.append(line);
        }
    }

    private static Object valueOf(Number value) {
        return value == null ? UNKNOWN : value instanceof Double real ? Math.round(real) : value;
    }

    /** Lists the sessions: as many as fit with all their fields, then as many as fit as processes only. */
    private void sessions(StringBuilder text, String vgpu, int maxBytes) {
        List<SessionView> present = sessions.get().stream().filter(s -> s.guest().vgpu().equals(vgpu)).toList();
        int reserved = present.stream().mapToInt(session -> bytes(process(session))).sum();
        int room = maxBytes - bytes(text) - MORE_BYTES;
        int left = 0;
        for (SessionView session : present) {
            StringBuilder whole = session(session);
            StringBuilder process = process(session);
            reserved -= bytes(process);
            boolean fits = left == 0 && bytes(whole) + reserved <= room;
            StringBuilder line = fits ? whole : process;
            left += fits ? 0 : 1;
            if (bytes(line) <= room) {
                room -= bytes(line);
                text.append(line);
            }
        }
        if (left > 0) {
            line(text, "more", left);
        }
    }

    private static StringBuilder session(SessionView session) {
        StringBuilder line = new StringBuilder();
        line(line, "session", session.id(), session.guest().pid(), name(session.guest().program()),
            name(session.guest().host()), session.guest().carrier().label(),
            session.state().name().toLowerCase(Locale.ROOT), session.statistics().deviceBytes(),
            session.statistics().kernels(), session.statistics().roundTrips(), session.started().getEpochSecond());
        return line;
    }

    private static StringBuilder process(SessionView session) {
        StringBuilder line = new StringBuilder();
        line(line, "process", session.guest().pid(), name(session.guest().host()),
            session.statistics().deviceBytes());
        return line;
    }

    private static int bytes(StringBuilder text) {
        return text.toString().getBytes(StandardCharsets.UTF_8).length;
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
