package io.hawser.ctl.cdi;

import io.hawser.client.Item;
import io.hawser.client.Json;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The CDI specification of a device, and the settings of the guest libraries in its containers.
 *
 * @param device the vGPU's device.
 * @param libraries folder of the guest libraries on this machine.
 * @param command the guest's {@code hawser} command, if this machine has it.
 * @param broker address of the broker for guests; empty if the device uses only the region.
 * @param withAuthorities whether the device has a file of authorities for the broker's certificate.
 * @param region the region's file, if the device has one.
 */
public record Specification(Device device, Path libraries, Optional<Path> command, String broker,
    boolean withAuthorities, Optional<Path> region) {
    /** Podman 4.3 accepts 0.1.0 to 0.5.0. This version has all that the specification uses. */
    private static final String VERSION = "0.3.0";
    private static final String LIBRARIES = "/usr/lib/hawser/guest";
    private static final String COMMAND = "/usr/bin/hawser";
    private static final String SETTINGS = "/etc/hawser/guest.toml";
    private static final String TOKEN = "/run/hawser/token";
    private static final String AUTHORITIES = "/run/hawser/ca.pem";
    private static final String REGION = "/run/hawser/region";

    /** The specification's text. It contains no secret: every user of the machine may read it. */
    public String text() {
        Map<String, Object> edits = new LinkedHashMap<>();
        edits.put("env", environment());
        edits.put("mounts", mounts());
        Map<String, Object> entry = new LinkedHashMap<>();
        entry.put("name", device.vgpu());
        entry.put("containerEdits", edits);
        Map<String, Object> specification = new LinkedHashMap<>();
        specification.put("cdiVersion", VERSION);
        specification.put("kind", Device.KIND);
        specification.put("devices", List.of(entry));
        return Json.pretty(specification) + "\n";
    }

    /**
     * The settings for processes without the specification's variables: `podman exec` does not pass these on. The
     * variables serve the container's first process also where the image has an ivshmem device before the settings.
     */
    public String settings() {
        StringBuilder text = new StringBuilder("# Written by hawserctl cdi.\n[guest]\n");
        if (!broker.isEmpty()) {
            text.append("broker = \"").append(broker).append("\"\ntoken_file = \"" + TOKEN + "\"\n");
            text.append(withAuthorities ? "ca_file = \"" + AUTHORITIES + "\"\n" : "");
        }
        return text.append(region.isPresent() ? "region = \"" + REGION + "\"\n" : "").toString();
    }

    private List<String> environment() {
        List<String> variables = new ArrayList<>();
        if (!broker.isEmpty()) {
            variables.add("HAWSER_BROKER=" + broker);
            variables.add("HAWSER_TOKEN_FILE=" + TOKEN);
            if (withAuthorities) {
                variables.add("HAWSER_CA_FILE=" + AUTHORITIES);
            }
        }
        if (region.isPresent()) {
            variables.add("HAWSER_REGION=" + REGION);
        }
        // As `hawser run` sets them (guest-agent/agent/libraries.c).
        variables.add("LD_LIBRARY_PATH=" + LIBRARIES);
        variables.add("LD_AUDIT=" + LIBRARIES + "/libhawser-audit.so");
        variables.add("GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384");
        return variables;
    }

    private List<Object> mounts() {
        List<Object> mounts = new ArrayList<>();
        mounts.add(mount(libraries, LIBRARIES, "ro"));
        command.ifPresent(path -> mounts.add(mount(path, COMMAND, "ro")));
        mounts.add(mount(device.settings(), SETTINGS, "ro"));
        if (!broker.isEmpty()) {
            mounts.add(mount(device.token(), TOKEN, "ro"));
            if (withAuthorities) {
                mounts.add(mount(device.authorities(), AUTHORITIES, "ro"));
            }
        }
        // A guest writes its records into the region.
        region.ifPresent(path -> mounts.add(mount(path, REGION, "rw")));
        return mounts;
    }

    private static Map<String, Object> mount(Path host, String container, String access) {
        Map<String, Object> mount = new LinkedHashMap<>();
        mount.put("hostPath", host.toString());
        mount.put("containerPath", container);
        mount.put("options", List.of(access, "nosuid", "nodev", "bind"));
        return mount;
    }

    /** The region's file that a written specification mounts. The JSON is an object of this class or empty. */
    static Optional<Path> region(Item specification) {
        return specification.items("devices").stream().flatMap(entry -> entry.item("containerEdits").items("mounts")
            .stream()).filter(mount -> mount.text("containerPath").equals(REGION))
            .map(mount -> Path.of(mount.text("hostPath"))).findFirst();
    }
}
