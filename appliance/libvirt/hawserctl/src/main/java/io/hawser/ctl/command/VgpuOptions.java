package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** What a vGPU is made of, or changed to; only what is given is sent. */
final class VgpuOptions {
    /** How a vGPU has its GPUs. */
    enum Mode { shared, exclusive }

    /** How guests come. */
    enum Carrier { tcp, shm }

    @Spec(Spec.Target.MIXEE)
    private CommandSpec spec;
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
    @Option(names = "--owner", paramLabel = "OWNER",
        description = "domain:UUID (of libvirt), host:NAME, or none.")
    private String owner;

    /** As the interface wants it. */
    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>();
        put(body, "memoryBytes", memory);
        put(body, "computeShare", share);
        put(body, "mode", mode == null ? null : mode.name());
        put(body, "gpus", gpus);
        put(body, "carriers", carriers == null ? null : carriers.stream().map(Enum::name).toList());
        put(body, "maxSessions", maxSessions);
        put(body, "owner", owner == null ? null : owner());
        return body;
    }

    private Map<String, Object> owner() {
        String[] parts = owner.split(":", 2);
        if (!(owner.equals("none") || parts.length == 2 && List.of("domain", "host").contains(parts[0]))) {
            throw new ParameterException(spec.commandLine(), "--owner is domain:UUID, host:NAME or none: " + owner);
        }
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("kind", parts[0]);
        object.put("id", parts.length == 2 ? parts[1] : "");
        return object;
    }

    private static void put(Map<String, Object> body, String name, Object value) {
        if (value != null) {
            body.put(name, value);
        }
    }
}
