package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Option;

/** The properties of a new or changed vGPU; only given options are sent. */
final class VgpuOptions {
    /** The use of the vGPU's GPUs. */
    enum Mode { shared, exclusive }

    /** With whom the guests' processes exchange data. */
    enum Communication { none, host }

    /** The guests' carrier. */
    enum Carrier { tcp, shm }

    @Option(names = "--memory", paramLabel = "SIZE", converter = SizeConverter.class,
        description = "Reserved memory on each of its GPUs: 16G; 0: best effort, without a reservation.")
    private Long memory;
    @Option(names = "--share", paramLabel = "1..100",
        description = "Weight among the vGPUs that use the GPU at the same time.")
    private Integer share;
    @Option(names = "--mode", paramLabel = "MODE",
        description = "shared, or exclusive: no other vGPU on its GPUs.")
    private Mode mode;
    @Option(names = "--gpus", paramLabel = "GPUS",
        description = "any, all, or numbers and UUIDs separated by commas.")
    private String gpus;
    @Option(names = "--carriers", paramLabel = "CARRIER", split = ",",
        description = "The allowed carriers of guests: tcp,shm.")
    private List<Carrier> carriers;
    @Option(names = "--max-sessions", paramLabel = "N", description = "Sessions at a time; 0: only the broker's limit.")
    private Integer maxSessions;
    @Option(names = "--communication", paramLabel = "WITH",
        description = "With whom its processes exchange data by NCCL: none or host (its other processes).")
    private Communication communication;
    @Option(names = "--swappable", negatable = true,
        description = "Whether its memory may move to the host while it is idle and the GPU's memory is short.")
    private Boolean swappable;
    @Option(names = "--rdma", negatable = true,
        description = "Whether its sessions may use RDMA, where the broker has it.")
    private Boolean rdma;
    @Option(names = "--owner", paramLabel = "OWNER", converter = Owner.Converter.class,
        description = "domain:UUID (of libvirt), host:NAME, or none.")
    private Owner owner;

    @Option(names = "--expires", paramLabel = "TIME", converter = Expiry.Converter.class,
        description = "When the broker deletes it and ends its sessions: 2h, 30d, 2027-01-31T12:00:00Z, or never.")
    private Expiry expires;
    @Option(names = "--label", paramLabel = "KEY=VALUE",
        description = "A label; repeat it for several. They replace all its labels.")
    private Map<String, String> labels;

    /** The form in the REST interface. */
    Map<String, Object> body() {
        Map<String, Object> body = new LinkedHashMap<>();
        put(body, "memoryBytes", memory);
        put(body, "computeShare", share);
        put(body, "mode", mode == null ? null : mode.name());
        put(body, "gpus", gpus);
        put(body, "carriers", carriers == null ? null : carriers.stream().map(Enum::name).toList());
        put(body, "maxSessions", maxSessions);
        put(body, "communication", communication == null ? null : communication.name());
        put(body, "swappable", swappable);
        put(body, "rdma", rdma);
        put(body, "expires", expires == null ? null : expires.time());
        put(body, "labels", labels);
        put(body, "owner", owner == null ? null : owner.body());
        return body;
    }

    private static void put(Map<String, Object> body, String name, Object value) {
        if (value != null) {
            body.put(name, value);
        }
    }
}
