package io.hawser.broker.model;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;

/**
 * The choice of a vGPU's GPUs: any one, all, or a list.
 *
 * @param kind one of the three.
 * @param entries of a list: numbers from 0 in the workers' order of the GPUs, or prefixes of UUIDs.
 */
public record GpuChoice(Kind kind, List<String> entries) {
    /** The default. */
    public static final GpuChoice ANY = new GpuChoice(Kind.ANY, List.of());

    private static final int LEAST_UUID_CHARACTERS = 4; // shorter ones are numbers
    private static final Pattern ENTRY = Pattern.compile("\\d{1,4}|(GPU-)?[0-9a-f-]{4,36}");
    private static final String PREFIX = "GPU-"; // as nvidia-smi and CUDA_VISIBLE_DEVICES write it

    /** The three kinds of choice. */
    public enum Kind {
        /** One GPU, chosen when the vGPU is placed. */
        ANY,
        /** All GPUs. */
        ALL,
        /** The GPUs of the list. */
        LIST
    }

    /** The choice matches no usable GPU; the message gives the reason. */
    public static final class NoGpuException extends Exception {
        private static final long serialVersionUID = 1L;

        NoGpuException(String message) {
            super(message);
        }
    }

    /**
     * Parses a setting: {@code any}, {@code all}, or numbers and UUIDs separated by commas.
     *
     * @throws IllegalArgumentException when it is none of these; the message shows the bad entry.
     */
    public static GpuChoice parse(String text) {
        String wanted = text.strip();
        switch (wanted.toLowerCase(Locale.ROOT)) {
            case "any" -> {
                return ANY;
            }
            case "all" -> {
                return new GpuChoice(Kind.ALL, List.of());
            }
            default -> {
                List<String> entries = new ArrayList<>();
                for (String entry : wanted.split(",", -1)) {
                    String clean = entry.strip();
                    String uuid = clean.regionMatches(true, 0, PREFIX, 0, PREFIX.length())
                        ? PREFIX + clean.substring(PREFIX.length()).toLowerCase(Locale.ROOT)
                        : clean.toLowerCase(Locale.ROOT);
                    if (!ENTRY.matcher(uuid).matches()) {
                        throw new IllegalArgumentException("GPUs must be any, all, or numbers and UUIDs with commas: "
                            + "entry=" + Printable.text(clean, 64));
                    }
                    entries.add(uuid);
                }
                return new GpuChoice(Kind.LIST, List.copyOf(entries));
            }
        }
    }

    /**
     * The GPUs of a choice other than {@code any}, in its order.
     *
     * @param devices all GPUs, in the workers' order.
     * @throws NoGpuException when an entry of a list matches no GPU, several GPUs, or a GPU of an earlier entry.
     */
    public List<Device> named(List<Device> devices) throws NoGpuException {
        return switch (kind) {
            case ANY -> throw new IllegalStateException("the choice must be all or a list: choice=any");
            case ALL -> devices;
            case LIST -> resolve(devices);
        };
    }

    /** Whether it chooses one GPU, however many there are. */
    public boolean isOne() {
        return kind == Kind.ANY || kind == Kind.LIST && entries.size() == 1;
    }

    private List<Device> resolve(List<Device> devices) throws NoGpuException {
        List<Device> chosen = new ArrayList<>();
        for (String entry : entries) {
            List<Device> named = new ArrayList<>();
            for (int number = 0; number < devices.size(); number++) {
                if (matches(entry, number, devices.get(number).uuid())) {
                    named.add(devices.get(number));
                }
            }
            if (named.size() != 1 || chosen.contains(named.getFirst())) {
                throw new NoGpuException("the vGPU's GPU must be one that exists, named once: gpu=" + entry
                    + " matches=" + named.size() + " gpus="
                    + devices.stream().map(Device::uuid).toList());
            }
            chosen.add(named.getFirst());
        }
        return List.copyOf(chosen);
    }

    private static boolean matches(String entry, int number, String uuid) {
        if (entry.equals(Integer.toString(number))) {
            return true;
        }
        String start = entry.startsWith(PREFIX) ? entry.substring(PREFIX.length()) : entry;
        return start.length() >= LEAST_UUID_CHARACTERS && uuid.startsWith(start);
    }

    @Override
    public String toString() {
        return kind == Kind.LIST ? String.join(",", entries) : kind.name().toLowerCase(Locale.ROOT);
    }
}
