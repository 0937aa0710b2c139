package io.hawser.ctl.command;

import io.hawser.client.DaemonClient;
import io.hawser.client.Item;
import io.hawser.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl attach}. */
@Command(name = "attach", sortOptions = false, description = {"Gives a domain a vGPU: the running domain and its"
    + " definition, if it has both.", "For a running domain the command ends when the guest has found the device."})
public final class AttachCommand extends DomainCommand {
    /** The use of the vGPU's GPUs. */
    enum Mode { shared, exclusive }

    /** The guest's carrier. */
    enum Transport { shm, tcp, rdma }

    /** Yes or no. */
    enum Answer { yes, no }

    @Parameters(paramLabel = "DOMAIN", description = "Its name or UUID.")
    private String domain;
    @Option(names = "--memory", paramLabel = "SIZE",
        description = "Reserved memory on each of its GPUs: 16G. Without it: best effort.")
    private String memory;
    @Option(names = "--share", paramLabel = "1..100",
        description = "Weight among the vGPUs that use the GPU at the same time (100).")
    private String share;
    @Option(names = "--mode", paramLabel = "MODE", description = "shared, or exclusive: no other vGPU on its GPUs.")
    private Mode mode;
    @Option(names = "--gpus", paramLabel = "GPUS", description = "any, all, or numbers and UUIDs separated by commas.")
    private String gpus;
    @Option(names = "--swappable", paramLabel = "yes|no",
        description = "yes: its memory may move to the host while it is idle and the GPU's memory is short.")
    private Answer swappable;
    @Option(names = "--sessions", paramLabel = "N", description = "Programs at a time (16); for shm 64 at most.")
    private String sessions;
    @Option(names = "--transport", paramLabel = "TRANSPORT",
        description = "shm: a device; tcp: over the network; rdma: over InfiniBand or RoCE. Xen has no shm.")
    private Transport transport;
    @Option(names = "--network", paramLabel = "POOL",
        description = "For rdma: libvirt's network that supplies a virtual function (forward mode hostdev).")
    private String network;
    @Option(names = "--region", paramLabel = "SIZE", description = "Shared memory of the device, a power of two (64M).")
    private String region;
    @Option(names = "--name", paramLabel = "NAME", description = "The vGPU's name at the broker (the domain's name).")
    private String name;
    @Option(names = "--required", paramLabel = "yes|no",
        description = "no: the domain also starts without the vGPU, and gets it when it is available.")
    private Answer required;
    @Mixin
    private Scope scope;
    @Option(names = "--timeout", paramLabel = "SECONDS", defaultValue = "30",
        description = "Time limit for the guest to find the device (30).")
    private int timeout;
    @Option(names = "--print-xml",
        description = "Changes nothing; prints the XML and the virsh commands that do the same.")
    private boolean printXml;

    @Override
    void run(DaemonClient daemon) {
        Map<String, Object> vgpu = new LinkedHashMap<>();
        put(vgpu, "name", name);
        put(vgpu, "memory", memory);
        put(vgpu, "share", share);
        put(vgpu, "mode", mode);
        put(vgpu, "gpus", gpus);
        put(vgpu, "swappable", swappable);
        put(vgpu, "sessions", sessions);
        put(vgpu, "transport", transport);
        put(vgpu, "network", network);
        put(vgpu, "region", region);
        put(vgpu, "required", required);
        Map<String, Object> body = new LinkedHashMap<>(Map.of("vgpu", vgpu, "timeoutS", seconds(timeout)));
        scope.put(body);
        Object answer = daemon.post(path(domain, printXml ? "xml" : "attach"), body, this::progress);
        if (!printXml) {
            print(answer);
        } else if (json()) {
            out().println(Json.pretty(answer));
        } else {
            out().println(Item.of(answer).text("text").stripTrailing());
        }
    }

    private static void put(Map<String, Object> vgpu, String name, Object value) {
        if (value != null) {
            vgpu.put(name, value.toString());
        }
    }
}
