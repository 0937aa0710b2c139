package io.hawser.hypervisor.config;

import io.hawser.client.ClientException;
import io.hawser.client.ConfigFile;
import io.hawser.client.Endpoint;
import io.hawser.client.Failure;
import io.hawser.client.Settings;
import io.hawser.hypervisor.files.RegionFiles;
import io.hawser.hypervisor.share.GuestNetwork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The settings of {@code hawserd.conf}. Each has a default that fits a broker on the same machine. */
public final class HawserdConfig {
    private static final int MIN_HOOK_TIMEOUT_S = 15; // its parts are some seconds less than it
    private static final int MAX_HOOK_TIMEOUT_S = 600;
    private static final List<String> QEMU_USERS = List.of("libvirt-qemu", "qemu");

    private final Map<String, String> values;

    private HawserdConfig(Map<String, String> values) {
        this.values = values;
    }

    /**
     * Reads a file.
     *
     * @throws ClientException names the file and the line.
     */
    public static HawserdConfig read(Path file, boolean mustExist) {
        HawserdConfig config = new HawserdConfig(ConfigFile.read(file, mustExist, HawserdSetting.NAMES));
        config.check(file);
        return config;
    }

    private void check(Path file) {
        require(file, "region.mode", text("region.mode").matches("0?[0-7]{2}0"),
            "three octal digits, the last of them 0 (the broker serves no region that all users may open)");
        String hook = text("hook.timeout");
        require(file, "hook.timeout", hook.matches("\\d{1,3}") && Integer.parseInt(hook) >= MIN_HOOK_TIMEOUT_S
            && Integer.parseInt(hook) <= MAX_HOOK_TIMEOUT_S,
            "a number of seconds from " + MIN_HOOK_TIMEOUT_S + " to "
                + MAX_HOOK_TIMEOUT_S);
        for (String name : List.of("broker.state-dir", "broker.token-file", "broker.password-file", "broker.ca-file",
            "guest.ca-file", "region.folder", "socket.path", "state-dir")) {
            require(file, name, text(name, "/").startsWith("/"), "an absolute path");
        }
        require(file, "guest.broker", !text("guest.broker", "").contains("\""), "host:port or tls://host:port");
    }

    private void require(Path file, String name, boolean holds, String rule) {
        if (!holds) {
            throw new ClientException(Failure.INVALID, file + ": " + name + " must be " + rule + ": "
                + values.get(name));
        }
    }

    /** The value of a setting, or its default. */
    private String text(String name) {
        return text(name, HawserdSetting.of(name).orElseThrow().standard());
    }

    private String text(String name, String standard) {
        String value = values.getOrDefault(name, "");
        return value.isEmpty() ? standard : value;
    }

    /** libvirt's drivers on this machine. */
    public List<String> libvirtUris() {
        String named = text("libvirt.uri", "");
        if (!named.isEmpty()) {
            return List.of(named.split(",\\s*"));
        }
        // A dom0 has Xen's toolstack; other machines have no libxl.
        return Files.exists(Path.of("/proc/xen/capabilities")) ? List.of("xen:///system") : List.of("qemu:///system");
    }

    /**
     * Finds the broker.
     *
     * @throws ClientException if there is none.
     */
    public Endpoint broker() {
        Map<String, String> options = new HashMap<>();
        for (String name : List.of("url", "token-file", "user", "password-file", "ca-file", "state-dir")) {
            String value = text("broker." + name, "");
            if (!value.isEmpty()) {
                options.put(name, value);
            }
        }
        if (!options.containsKey("url") && !options.containsKey("state-dir")) {
            options.put("state-dir", text("broker.state-dir"));
        }
        return new Settings(options, Map.of(), Path.of("/nonexistent"), null).endpoint();
    }

    /** The domain of this host that runs the broker; empty if the broker runs elsewhere. */
    public Optional<String> gpuDomain() {
        return Optional.of(text("broker.domain", "")).filter(name -> !name.isEmpty());
    }

    /** How guests reach the broker by TCP. */
    public GuestNetwork network() {
        String ca = text("guest.ca-file", text("broker.ca-file", ""));
        return new GuestNetwork(text("guest.broker", ""), ca.isEmpty() ? null : Path.of(ca));
    }

    /** The regions' files. */
    public RegionFiles regions(int uid, int gid) {
        Set<Integer> makers = new HashSet<>();
        QEMU_USERS.forEach(user -> makers.add(id(Path.of("/etc/passwd"), user, uid)));
        int owner = uid;
        int group = gid;
        if (uid == 0) {
            owner = values.containsKey("region.owner") ? named("region.owner", Path.of("/etc/passwd"))
                : brokersUser();
            group = values.containsKey("region.group") ? named("region.group", Path.of("/etc/group"))
                : id(Path.of("/etc/group"), text("region.group"), gid);
        }
        Set<PosixFilePermission> mode = RegionFiles.mode(text("region.mode"));
        return new RegionFiles(Path.of(text("region.folder")), owner, group, mode, makers);
    }

    private int brokersUser() {
        Path state = Path.of(text("broker.state-dir"));
        try {
            return (Integer) Files.getAttribute(state, "unix:uid");
        } catch (IOException e) {
            return id(Path.of("/etc/passwd"), "hawser", 0); // not created yet, or the broker is elsewhere
        }
    }

    private int named(String setting, Path database) {
        int id = id(database, values.get(setting), -1);
        if (id < 0) {
            throw new ClientException(Failure.INVALID, setting + " must be a name of " + database + " or a number: "
                + values.get(setting));
        }
        return id;
    }

    /** The number itself, or the id of a name. */
    private static int id(Path database, String name, int otherwise) {
        if (name.matches("\\d{1,9}")) {
            return Integer.parseInt(name);
        }
        try {
            for (String line : Files.readAllLines(database)) {
                String[] fields = line.split(":");
                if (fields.length > 2 && fields[0].equals(name)) {
                    return Integer.parseInt(fields[2]);
                }
            }
        } catch (IOException e) {
            return otherwise; // an unreadable database counts as one without the name
        }
        return otherwise;
    }

    /** The socket for hooks and hawserctl. */
    public Path socket() {
        return Path.of(text("socket.path"));
    }

    /** The group whose members may use the socket in addition to root; -1 for none. */
    public int socketGroup() {
        return values.getOrDefault("socket.group", "").isEmpty() ? -1 : named("socket.group", Path.of("/etc/group"));
    }

    /** The longest time until a hook gets its answer. */
    public Duration hookTimeout() {
        return Duration.ofSeconds(Integer.parseInt(text("hook.timeout")));
    }

    /** The folder of state that outlives the process. */
    public Path stateDir() {
        return Path.of(text("state-dir"));
    }

    /** The settings for the log; none is secret. */
    public List<String> shown() {
        List<String> all = new ArrayList<>();
        values.forEach((name, value) -> all.add(name + "=" + value));
        return all;
    }
}
