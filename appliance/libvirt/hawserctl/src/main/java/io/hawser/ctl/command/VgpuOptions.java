package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Option;

/** What a vGPU is made of, or changed to; only what is given is sent. */
final class VgpuOptions {
    /** How a vGPU has its GPUs. */
    enum Mode { shared, exclusive }

    /** How guests come. */
    enum Carrier { tcp, shm }

    @Option(names = "--memory", paramLabel = "SIZE", converter = SizeConverter.class,
        description = "Memory of each of its GPUs as guests see it: 16G; 0: what is left, and nothing is reserved.")
    private Long memory;
    @Option(names = "--share", paramLabel = "1..100",
        description = "Weight among those that want the GPU at the same time.")
    private Integer share;
    @Option(names = "--mode", paramLabel = "MODE",
        description = "shared, or exclusive: no other vGPU on its GPUs.")
    private Mode mode;
    @Option(names = "--gpus", paramLabel = "GPUS",
        description = "any, all, or numbers and UUIDs with commas.")
    private String gpus;
    @Option(names = "--carriers", paramLabel = "CARRIER", split = ",", description = "How guests may come: tcp,shm.")
    private List<Carrier> carriers;
    @Option(names = "--max-sessions", paramLabel = "N", description = "Sessions at a time; 0: no limit of its own.")
    private Integer maxSessions;
    @Option(names = "--owner", paramLabel = "OWNER", converter = Owner.Converter.class,
        description = "domain:UUID (of libvirt), host:NAME, or none.")
    private Owner owner;

    /** As the interface wants it. */
    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>();
        put(body, "memoryBytes", memory);
        put(body, "computeShare", share);
        put(body, "mode", mode == null ? null : mode.name());
        put(body, "gpus", gpus);
        put(body, "carriers", carriers == null ? null : carriers.stream().map(Enum::name).toList());
        put(body, "maxSessions", maxSessions);
        put(body, "owner", owner == null ? null : owner.body());
        return body;
    }

    private static void put(Map<String, Object> body, String name, Object value) {
        if (value != null) {
            body.put(name, value);
        }
    }
}
