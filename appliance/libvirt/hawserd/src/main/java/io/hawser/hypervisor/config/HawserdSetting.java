package io.hawser.hypervisor.config;

import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The settings of {@code hawserd.conf} with their defaults. The build makes the reference page, the manual page and the
 * example file from these comments: the sentence "Default:" explains a default that is no constant.
 */
enum HawserdSetting {
    /**
     * Drivers of libvirt on this host, separated by commas. Default: {@code xen:///system} in a dom0, else
     * {@code qemu:///system}.
     */
    LIBVIRT_URI("libvirt.uri", "", "qemu:///system"),
    /** Folder of hawserd's own files: the settings of guests that use TCP or RDMA. An absolute path. */
    STATE_DIR("state-dir", "/var/lib/hawser/hypervisor"),
    /** Unix socket for hooks and hawserctl. An absolute path. */
    SOCKET_PATH("socket.path", "/run/hawser/hawserd.sock"),
    /**
     * Group whose members may use the socket in addition to root: a name or a number. Only root may call a hook.
     * Default: none.
     */
    SOCKET_GROUP("socket.group", "", "libvirt"),
    /**
     * Longest time in seconds until a hook of libvirt gets its answer, 15 to 600. The hook script itself waits for 25
     * s; a longer limit here needs a longer {@code HAWSER_HOOK_TIMEOUT} there.
     */
    HOOK_TIMEOUT("hook.timeout", "22"),
    /**
     * State folder of a broker on this host, which holds its address and its admin token: an alternative to
     * {@link #BROKER_URL}. An absolute path.
     */
    BROKER_STATE_DIR("broker.state-dir", "/var/lib/hawser/broker"),
    /**
     * URL of the broker's REST interface. With a broker on another host, domains cannot use shared memory. Default: the
     * broker of {@link #BROKER_STATE_DIR}.
     */
    BROKER_URL("broker.url", "", "https://gpu.example.org:7655"),
    /** File with a token that the broker accepts. An absolute path. Default: the admin token of the state folder. */
    BROKER_TOKEN_FILE("broker.token-file", "", "/etc/hawser/broker.token"),
    /**
     * User of the broker with the role operator, instead of a token; needs {@link #BROKER_PASSWORD_FILE}. Default:
     * none.
     */
    BROKER_USER("broker.user", "", "hawserd"),
    /** File with that user's password. An absolute path. Default: none. */
    BROKER_PASSWORD_FILE("broker.password-file", "", "/etc/hawser/broker.password"),
    /** PEM file of the authorities to trust for the broker's certificate. Default: those of the host. */
    BROKER_CA_FILE("broker.ca-file", "", "/etc/hawser/ca.pem"),
    /**
     * Name or UUID of a domain of this host that has the GPU and runs the broker; needs {@link #BROKER_URL}. hawserd
     * attaches the region of each other domain to it, so it must be prepared ({@code hawserctl prepare}). Default:
     * none.
     */
    BROKER_DOMAIN("broker.domain", "", "gpu"),
    /**
     * Address of the broker for guests that use TCP or RDMA: {@code host:port} or {@code tls://host:port}, or several
     * with commas. Default: the address that the broker reports, if that is an address of a network.
     */
    GUEST_BROKER("guest.broker", "", "tls://192.168.122.1:7656"),
    /** PEM file of the authorities by which guests verify the broker. Default: {@link #BROKER_CA_FILE}. */
    GUEST_CA_FILE("guest.ca-file", "", "/etc/hawser/ca.pem"),
    /**
     * Owner of the files of regions, which must be the broker's user: a name or a number. Default: the owner of
     * {@link #BROKER_STATE_DIR}.
     */
    REGION_OWNER("region.owner", "", "hawser"),
    /** Group of these files, whose members run QEMU: a name or a number. */
    REGION_GROUP("region.group", "kvm"),
    /** Mode of these files: three octal digits, the last of them 0. The broker rejects a region that all can open. */
    REGION_MODE("region.mode", "0660"),
    /**
     * Folder of these files. QEMU searches only {@code /dev/shm}. The broker must name another folder in
     * {@code hawser.region-folders}.
     */
    REGION_FOLDER("region.folder", "/dev/shm");

    /** The names of all settings. */
    static final Set<String> NAMES = Arrays.stream(values()).map(HawserdSetting::key).collect(
        Collectors.toUnmodifiableSet());

    private final String key;
    private final String standard;
    private final String example;

    HawserdSetting(String key, String standard) {
        this(key, standard, standard);
    }

    HawserdSetting(String key, String standard, String example) {
        this.key = key;
        this.standard = standard;
        this.example = example;
    }

    /** The setting of a name in the file. */
    static Optional<HawserdSetting> of(String key) {
        return Arrays.stream(values()).filter(setting -> setting.key.equals(key)).findFirst();
    }

    /** The name in the file. */
    String key() {
        return key;
    }

    /** The default; empty where it is no constant. */
    String standard() {
        return standard;
    }

    /** A value for the example file. */
    String example() {
        return example;
    }
}
