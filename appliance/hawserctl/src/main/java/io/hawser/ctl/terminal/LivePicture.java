package io.hawser.ctl.terminal;

import io.hawser.client.ClientException;
import io.hawser.client.EventReader;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.client.Text;
import io.hawser.client.Units;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The broker's state from its event stream: a complete picture, and all changes since then. */
public final class LivePicture {
    private final Map<String, Item> gpus = new LinkedHashMap<>();
    private final Map<String, Item> vgpus = new LinkedHashMap<>();
    private final Map<String, Item> sessions = new LinkedHashMap<>();
    private final Map<String, Double> callRates = new LinkedHashMap<>();
    private final Map<String, Double> waitRates = new LinkedHashMap<>();
    private Item broker = new Item(Map.of());
    private Instant time;
    private String lastEvent = "";

    /**
     * Applies one event of the stream.
     *
     * @return whether the picture must be drawn again.
     */
    public boolean apply(EventReader.Event event) {
        switch (event.name()) {
            case "picture" -> {
                gpus.clear();
                vgpus.clear();
                sessions.clear();
                callRates.clear();
                waitRates.clear();
                time = null;
                change(event.json());
            }
            case "change" -> change(event.json());
            case "event" -> lastEvent = Units.local(event.json().text("time")) + "  " + event.json().text("text");
            default -> {
                return false;
            }
        }
        return true;
    }

    private void change(Item change) {
        Instant before = time;
        try {
            time = Instant.parse(change.text("time"));
        } catch (DateTimeParseException e) {
            throw new ClientException(Failure.REFUSED, "the stream is not Hawser's: time=" + change.text("time"));
        }
        double seconds = before == null ? 0 : Duration.between(before, time).toNanos() / 1e9;
        if (change.has("broker")) {
            broker = change.item("broker");
        }
        change.items("gpus").forEach(gpu -> gpus.put(key(gpu), gpu));
        remove(change, "removedGpus", gpus);
        change.items("vgpus").forEach(vgpu -> vgpus.put(vgpu.text("name"), vgpu));
        remove(change, "removedVgpus", vgpus);
        // A session that is missing from a change has made no calls since the change before.
        callRates.replaceAll((id, rate) -> 0.0);
        waitRates.replaceAll((id, rate) -> 0.0);
        for (Item session : change.items("sessions")) {
            String id = session.text("id");
            Item old = sessions.put(id, session);
            callRates.put(id, rate(old, session, "calls", seconds));
            waitRates.put(id, rate(old, session, "roundTrips", seconds));
        }
        remove(change, "removedSessions", sessions);
        callRates.keySet().retainAll(sessions.keySet());
        waitRates.keySet().retainAll(sessions.keySet());
    }

    /** A GPU's key in {@code removedGpus}; software GPUs of several brokers may have the same UUID. */
    private static String key(Item gpu) {
        return (gpu.text("broker").isEmpty() ? "" : gpu.text("broker") + "/") + gpu.text("uuid");
    }

    private static void remove(Item change, String name, Map<String, Item> from) {
        if (change.fields().get(name) instanceof List<?> removed) {
            removed.forEach(key -> from.remove(String.valueOf(key)));
        }
    }

    private static double rate(Item before, Item now, String name, double seconds) {
        return before == null || seconds <= 0 ? 0 : Math.max(0, now.item("statistics").number(name)
            - before.item("statistics").number(name)) / seconds;
    }

    /** The lines of the picture: sums and the last event, then the tables. Not limited to a window. */
    public List<String> lines() {
        List<String> lines = new ArrayList<>();
        double calls = callRates.values().stream().mapToDouble(Double::doubleValue).sum();
        double waits = waitRates.values().stream().mapToDouble(Double::doubleValue).sum();
        lines.add("hawser " + broker.text("version") + " at " + broker.text("guestEndpoint")
            + (broker.text("name").isEmpty() ? "" : " (" + Text.printable(broker.text("name")) + ")") + "  "
            + (time == null ? "" : Units.local(time.toString())) + "  sessions " + sessions.size() + "/"
            + broker.number("maxSessions") + "  calls/s " + Units.count(calls) + "  waits/s " + Units.count(waits));
        lines.add(Text.printable(lastEvent));
        if (!broker.text("poolProblem").isEmpty()) {
            lines.add(Text.printable(broker.text("poolProblem")));
        }
        Table table = new Table(">GPU", "NAME", ">MEMORY", ">USED", ">RESERVED", ">UTIL", ">TEMP", ">POWER", ">VGPUS",
            ">SESSIONS", "HEALTH");
        gpus.values().forEach(gpu -> table.row(gpu.number("index"), gpu.text("name"),
            Units.size(gpu.number("totalBytes")),
            gpu.has("memoryUsedBytes") ? Units.size(gpu.number("memoryUsedBytes")) : "-",
            Units.size(gpu.number("reservedBytes")), figure(gpu, "utilizationPercent", "%"),
            figure(gpu, "temperatureCelsius", " C"), figure(gpu, "powerWatts", " W"), gpu.number("vgpus"),
            gpu.number("sessions"), gpu.text("health")));
        lines.addAll(BrokerColumn.add(table, gpus.values()).lines());
        lines.add("");
        lines.addAll(vgpuLines());
        lines.add("");
        lines.addAll(sessionLines());
        return lines;
    }

    private List<String> vgpuLines() {
        Table table = new Table("VGPU", "STATE", ">MEMORY", ">USED", ">SWAPPED", ">SHARE", "MODE", ">SESSIONS",
            ">CALLS/S", ">WAITS/S");
        List<Item> sorted = vgpus.values().stream().sorted(java.util.Comparator.comparing((Item v) -> -v.number(
            "sessions")).thenComparing(v -> v.text("name"))).toList();
        sorted.forEach(
            vgpu -> table.row(vgpu.text("name"), vgpu.text("state"),
                vgpu.number("memoryBytes") == 0 ? "best effort" : Units.size(vgpu.number("memoryBytes")),
                Units.size(vgpu.number("usedBytes")), swapped(vgpu), vgpu.number("computeShare"), vgpu.text("mode"),
                vgpu.number("sessions"), Units.count(sum(vgpu.text("name"), callRates)),
                Units.count(sum(vgpu.text("name"), waitRates))));
        return BrokerColumn.add(table, sorted).lines();
    }

    private double sum(String vgpu, Map<String, Double> rates) {
        return sessions.entrySet().stream().filter(e -> e.getValue().text("vgpu").equals(vgpu))
            .mapToDouble(e -> rates.getOrDefault(e.getKey(), 0.0)).sum();
    }

    private List<String> sessionLines() {
        Table table = new Table(">SESSION", "VGPU", "STATE", "CARRIER", "PROGRAM", "HOST", ">MEMORY", ">CALLS/S",
            ">WAITS/S", ">KERNELS", ">GPU TIME", ">WAITED");
        List<Map.Entry<String, Item>> sorted = sessions.entrySet().stream().sorted(java.util.Comparator.comparing(
            (Map.Entry<String, Item> e) -> -callRates.getOrDefault(e.getKey(), 0.0))
            .thenComparing(e -> e.getValue().number("id"))).toList();
        for (Map.Entry<String, Item> entry : sorted) {
            Item session = entry.getValue();
            Item totals = session.item("statistics");
            table.row(entry.getKey(), session.text("vgpu"), session.text("state"), session.text("carrier"),
                session.text("program"), session.text("host"), Units.size(totals.number("deviceBytes")),
                Units.count(callRates.getOrDefault(entry.getKey(), 0.0)),
                Units.count(waitRates.getOrDefault(entry.getKey(), 0.0)), Units.count(totals.number("kernels")),
                seconds(totals, "gpuTimeMs"), seconds(totals, "waitedMs"));
        }
        return BrokerColumn.add(table, sorted.stream().map(Map.Entry::getValue).toList()).lines();
    }

    private static String seconds(Item totals, String name) {
        return totals.has(name) ? String.format(java.util.Locale.ROOT, "%.1f s", totals.number(name) / 1000.0) : "-";
    }

    /** A vGPU's memory in the memory of the host; {@code -} if the vGPU is not swappable. */
    public static String swapped(Item vgpu) {
        return vgpu.has("swap") ? Units.size(vgpu.item("swap").number("swappedBytes")) : "-";
    }

    /** A figure of a GPU with its unit; some GPUs do not report it. */
    public static String figure(Item gpu, String name, String unit) {
        return gpu.has(name) ? Math.round(Double.parseDouble(gpu.text(name))) + unit : "-";
    }
}
