package io.hawser.hypervisor.model;

import io.hawser.client.Units;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The vGPU that a domain asks for, validated.
 *
 * @param name at the broker; empty for the domain's name.
 * @param memoryBytes reserved on each GPU; 0 is best effort.
 * @param share 1 to 100.
 * @param gpus {@code any}, {@code all}, or numbers and UUIDs separated by commas.
 * @param swappable whether its memory may move to the memory of the broker's host.
 * @param sessions at a time, 1 or more; for shared memory at most the region's slots.
 * @param regionBytes the region's length, a power of two; 0 with TCP.
 * @param required whether the domain may not start without it.
 * @param byDevice whether there is only a device, which asks for the defaults, and no metadata.
 * @param network libvirt's network that supplies a virtual function; empty if hawserd gives the domain none.
 * @param function the virtual function of an InfiniBand adapter, as a PCI address of the host; empty if libvirt chooses
 *     one from the network.
 */
public record Wish(String name, long memoryBytes, int share, Mode mode, String gpus, boolean swappable, int sessions,
    Transport transport, long regionBytes, boolean required, boolean byDevice, String network, String function) {
    /** The metadata's namespace. */
    public static final String NAMESPACE = "urn:hawser:vgpu:1";
    /** The metadata's prefix, as hawserctl writes it. */
    public static final String PREFIX = "hawser";
    /** The region's length if neither metadata nor command give one. */
    public static final long DEFAULT_REGION_BYTES = 64L << 20;
    static final long LEAST_REGION_BYTES = 4L << 20;
    /** Limits the host's memory that the author of a domain's definition can take. */
    static final long MOST_REGION_BYTES = 64L << 30;
    static final int DEFAULT_SESSIONS = 16;
    private static final int MAX_SESSIONS = 1_000_000; // the broker's own limit
    private static final int MAX_GPUS_CHARACTERS = 2048; // the broker's own limit
    private static final int MAX_SHOWN = 64; // limits the attribute's text in a reason
    private static final List<String> ATTRIBUTES = List.of("name", "memory", "share", "mode", "gpus", "swappable",
        "sessions", "transport", "region", "network", "function", "required");
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"); // the broker's own rule
    private static final Pattern GPU = Pattern.compile("\\d{1,4}|(?i:GPU-)?[0-9A-Fa-f-]{4,36}");
    private static final Pattern NUMBER = Pattern.compile("\\d{1,9}");
    private static final Pattern NETWORK = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,62}");
    private static final Pattern FUNCTION = Pattern.compile("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");

    /** Whether other vGPUs may be placed on its GPUs. */
    public enum Mode {
        /** They may. */
        SHARED,
        /** They may not. */
        EXCLUSIVE;

        /** The form at the broker and in the metadata. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** The carrier of the guest's calls. */
    public enum Transport {
        /** By an ivshmem device. */
        SHM,
        /** TCP, with settings from hawserd. */
        TCP,
        /** InfiniBand or RoCE, with settings from hawserd. A session begins over TCP. */
        RDMA;

        /** The form at the broker and in the metadata. */
        public String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** A wish without a virtual function. */
    public Wish(String name, long memoryBytes, int share, Mode mode, String gpus, boolean swappable, int sessions,
        Transport transport, long regionBytes, boolean required, boolean byDevice) {
        this(name, memoryBytes, share, mode, gpus, swappable, sessions, transport, regionBytes, required, byDevice, "",
            "");
    }

    /**
     * Reads the attributes of the metadata's element.
     *
     * @throws WishException names the attribute and its range.
     */
    public static Wish of(Map<String, String> attributes, Driver driver) throws WishException {
        TreeSet<String> unknown = new TreeSet<>(attributes.keySet());
        ATTRIBUTES.forEach(unknown::remove);
        if (!unknown.isEmpty()) {
            throw new WishException("vgpu has no attribute " + shown(unknown.first()) + ": it has "
                + String.join(", ", ATTRIBUTES));
        }
        Transport transport = transport(attributes.get("transport"), driver);
        boolean shm = transport == Transport.SHM;
        long region = region(attributes.get("region"), transport);
        int sessions = number("sessions", attributes.get("sessions"), shm ? standardSessions(region) : DEFAULT_SESSIONS,
            shm ? RegionLayout.MAX_SLOTS : MAX_SESSIONS);
        requireRoom(region, sessions, transport);
        String network = network(attributes.getOrDefault("network", ""), transport);
        return new Wish(name(attributes.getOrDefault("name", "")), memory(attributes.get("memory")),
            number("share", attributes.get("share"), 100, 100), choice("mode", attributes.get("mode"), Mode.SHARED),
            gpus(attributes.getOrDefault("gpus", "any")), isYes("swappable", attributes.get("swappable"), false),
            sessions, transport, region, isYes("required", attributes.get("required"), true), false, network,
            function(attributes.getOrDefault("function", ""), network));
    }

    /** The wish of a device without metadata. */
    public static Wish ofDevice(long regionBytes) throws WishException {
        long region = checkedRegion(regionBytes, Long.toString(regionBytes));
        return new Wish("", 0, 100, Mode.SHARED, "any", false, standardSessions(region), Transport.SHM, region, true,
            true);
    }

    private static String name(String text) throws WishException {
        if (!text.isEmpty() && !NAME.matcher(text).matches()) {
            throw new WishException("vgpu: name must be 1 to 63 letters, digits, _ . -, first a letter or digit: name="
                + shown(text));
        }
        return text;
    }

    private static String network(String text, Transport transport) throws WishException {
        if (!text.isEmpty() && transport != Transport.RDMA) {
            throw new WishException("vgpu: network is only for transport rdma: network=" + shown(text));
        }
        if (!text.isEmpty() && !NETWORK.matcher(text).matches()) {
            throw new WishException("vgpu: network must be 1 to 63 letters, digits, _ . : + -, first a letter, digit or"
                + " _: network=" + shown(text));
        }
        return text;
    }

    private static String function(String text, String network) throws WishException {
        if (!text.isEmpty() && (network.isEmpty() || !FUNCTION.matcher(text).matches())) {
            throw new WishException("vgpu: function must be a PCI address like 0000:3b:00.2, beside a network:"
                + " function=" + shown(text));
        }
        return text;
    }

    private static long memory(String text) throws WishException {
        if (text == null) {
            return 0;
        }
        try {
            long bytes = Units.bytes(text);
            if (bytes <= Long.MAX_VALUE / 2) {
                return bytes;
            }
        } catch (IllegalArgumentException e) {
            throw new WishException("vgpu: memory must be a size like 16G, 512M or a number of bytes: memory="
                + shown(text), e);
        }
        throw new WishException("vgpu: memory must be less than 4 EiB: memory=" + shown(text));
    }

    private static int number(String attribute, String text, int standard, int most) throws WishException {
        if (text == null) {
            return standard;
        }
        int number = NUMBER.matcher(text).matches() ? Integer.parseInt(text) : 0;
        if (number < 1 || number > most) {
            throw new WishException("vgpu: " + attribute + " must be 1 to " + most + ": " + attribute + "="
                + shown(text));
        }
        return number;
    }

    private static <E extends Enum<E>> E choice(String attribute, String text, E standard) throws WishException {
        if (text == null) {
            return standard;
        }
        E[] all = standard.getDeclaringClass().getEnumConstants();
        for (E one : all) {
            if (one.name().toLowerCase(Locale.ROOT).equals(text)) {
                return one;
            }
        }
        String names = Arrays.stream(all).map(one -> one.name().toLowerCase(Locale.ROOT))
            .collect(Collectors.joining(all.length == 2 ? " or " : ", "));
        throw new WishException("vgpu: " + attribute + " must be " + (all.length == 2 ? "" : "one of ") + names + ": "
            + attribute + "=" + shown(text));
    }

    private static Transport transport(String text, Driver driver) throws WishException {
        Transport transport = choice("transport", text, driver == Driver.XEN ? Transport.TCP : Transport.SHM);
        if (driver == Driver.XEN && transport == Transport.SHM) {
            throw new WishException("vgpu: transport must be tcp or rdma for a Xen domain, which has no <shmem>:"
                + " transport=" + shown(text));
        }
        return transport;
    }

    private static String gpus(String text) throws WishException {
        String wanted = text.strip();
        for (String all : List.of("any", "all")) {
            if (wanted.equalsIgnoreCase(all)) {
                return all;
            }
        }
        for (String entry : wanted.split(",", -1)) {
            if (wanted.length() > MAX_GPUS_CHARACTERS || !GPU.matcher(entry.strip()).matches()) {
                throw new WishException("vgpu: gpus must be any, all, or numbers and UUIDs separated by commas, "
                    + "at most " + MAX_GPUS_CHARACTERS + " characters: gpus=" + shown(text));
            }
        }
        return wanted;
    }

    /** 16, or fewer if a small region has room for fewer. */
    private static int standardSessions(long regionBytes) {
        int sessions = DEFAULT_SESSIONS;
        while (sessions > 1 && !hasRoom(regionBytes, sessions)) {
            sessions--;
        }
        return sessions;
    }

    private static boolean hasRoom(long regionBytes, int sessions) {
        try {
            RegionGeometry.of(regionBytes, sessions);
            return true;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    private static void requireRoom(long regionBytes, int sessions, Transport transport) throws WishException {
        if (transport == Transport.SHM && !hasRoom(regionBytes, sessions)) {
            throw new WishException("vgpu: a region of " + size(regionBytes) + " is too small for so many sessions:"
                + " sessions=" + sessions);
        }
    }

    private static long region(String text, Transport transport) throws WishException {
        if (transport != Transport.SHM) {
            if (text != null) {
                throw new WishException("vgpu: region is only for transport shm: region=" + shown(text));
            }
            return 0;
        }
        if (text == null) {
            return DEFAULT_REGION_BYTES;
        }
        long bytes;
        try {
            bytes = Units.bytes(text);
        } catch (IllegalArgumentException e) {
            bytes = 0;
        }
        return checkedRegion(bytes, text);
    }

    private static long checkedRegion(long bytes, String text) throws WishException {
        if (Long.bitCount(bytes) != 1 || bytes < LEAST_REGION_BYTES || bytes > MOST_REGION_BYTES) {
            throw new WishException("vgpu: region must be a power of two from 4M to 64G: region=" + shown(text));
        }
        return bytes;
    }

    private static boolean isYes(String attribute, String text, boolean standard) throws WishException {
        return switch (text) {
            case null -> standard;
            case "yes" -> true;
            case "no" -> false;
            default -> throw new WishException("vgpu: " + attribute + " must be yes or no: " + attribute + "="
                + shown(text));
        };
    }

    private static String shown(String text) {
        String printable = text.codePoints().limit(MAX_SHOWN).map(c -> Character.isISOControl(c) ? '?' : c)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
        return printable.length() < text.length() ? printable + "..." : printable;
    }

    /** The attributes of this wish, without those that have their default. */
    public Map<String, String> attributes() {
        Map<String, String> all = new LinkedHashMap<>();
        if (!name.isEmpty()) {
            all.put("name", name);
        }
        if (memoryBytes != 0) {
            all.put("memory", size(memoryBytes));
        }
        if (share != 100) {
            all.put("share", Integer.toString(share));
        }
        if (mode != Mode.SHARED) {
            all.put("mode", mode.label());
        }
        if (!gpus.equals("any")) {
            all.put("gpus", gpus);
        }
        if (swappable) {
            all.put("swappable", "yes");
        }
        if (sessions != (transport == Transport.SHM ? standardSessions(regionBytes) : DEFAULT_SESSIONS)) {
            all.put("sessions", Integer.toString(sessions));
        }
        all.put("transport", transport.label());
        if (transport == Transport.SHM) {
            all.put("region", size(regionBytes));
        }
        if (!network.isEmpty()) {
            all.put("network", network);
        }
        if (!function.isEmpty()) {
            all.put("function", function);
        }
        if (!required) {
            all.put("required", "no");
        }
        return all;
    }

    /** Whether hawserd gives the domain a virtual function. */
    public boolean hasNetwork() {
        return !network.isEmpty();
    }

    /** The same wish with the virtual function of an InfiniBand adapter. */
    public Wish withFunction(String address) {
        return new Wish(name, memoryBytes, share, mode, gpus, swappable, sessions, transport, regionBytes, required,
            byDevice, network, address);
    }

    /** The carrier by which the guest's sessions begin, in the broker's form. */
    public String carrier() {
        return (transport == Transport.SHM ? Transport.SHM : Transport.TCP).label();
    }

    /** An exact size, in the form of the attributes. */
    public static String size(long bytes) {
        String prefixes = "KMGT";
        long number = bytes;
        int power = 0;
        while (number != 0 && number % 1024 == 0 && power < prefixes.length()) {
            number /= 1024;
            power++;
        }
        return power == 0 ? Long.toString(number) : number + prefixes.substring(power - 1, power);
    }

    /**
     * The name of a vGPU whose metadata gives none: the domain's name, with {@code -} for each invalid character.
     *
     * @param taken whether another vGPU has that name. The first 8 characters of the UUID then make it unique.
     */
    public static String standardName(String domain, java.util.UUID uuid, boolean taken) {
        String suffix = taken ? "-" + uuid.toString().substring(0, 8) : "";
        String clean = domain.replaceAll("[^A-Za-z0-9_.-]", "-").replaceFirst("^[^A-Za-z0-9]+", "");
        String whole = clean.isEmpty() ? "domain" : clean;
        return whole.substring(0, Math.min(whole.length(), 63 - suffix.length())) + suffix;
    }
}
