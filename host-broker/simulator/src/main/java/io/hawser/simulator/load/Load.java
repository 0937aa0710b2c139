package io.hawser.simulator.load;

import io.hawser.simulator.engine.Durations;
import io.hawser.simulator.engine.Work;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Tenants of one kind.
 *
 * @param label the text that describes them.
 * @param kind their name.
 * @param tenants their number, 1 or more.
 * @param weight of each, 1 or more.
 * @param gpus that each uses at once, 1 or more.
 * @param kernelNs length of a kernel, over 0.
 * @param kernels kernels of a round, or {@link Work#ENDLESS}; 0 for tenants that never launch.
 * @param window kernels in flight, 1 or more.
 * @param pauseNs pause before each round.
 * @param jitter part by which pauses and the kernels of a round vary, 0 to 1.
 * @param fromNs when the tenants join.
 * @param untilNs when they leave; {@code Long.MAX_VALUE} for never.
 */
public record Load(String label, String kind, int tenants, int weight, int gpus, long kernelNs, long kernels,
    int window, long pauseNs, double jitter, long fromNs, long untilNs) {
    /** Limit of all tenants together. */
    public static final int MAX_TENANTS = 1000;
    private static final Pattern FORM = Pattern.compile("(?:([0-9]{1,4})x)?([a-z]+)(?::(.+))?");
    private static final Map<String, Load> KINDS = Map.of(
        "flight", kind("flight", 50_000, Work.ENDLESS, 8, 0),
        "wait", kind("wait", 200_000, 1, 1, 20_000),
        "burst", kind("burst", 100_000, 100, 8, 10_000_000),
        "long", kind("long", 50_000_000, Work.ENDLESS, 1, 0),
        "idle", kind("idle", 1, 0, 1, 0));

    private static Load kind(String name, long kernelNs, long kernels, int window, long pauseNs) {
        return new Load(name, name, 1, 100, 1, kernelNs, kernels, window, pauseNs, 0.1, 0, Long.MAX_VALUE);
    }

    /**
     * Parses {@code [COUNTx]KIND[:KEY=VALUE,...]}, such as {@code 8xflight:kernel=50us,weight=200}.
     *
     * @throws IllegalArgumentException if the text has another form or a value is out of its range.
     */
    public static Load parse(String text) {
        Matcher form = FORM.matcher(text);
        Load kind = form.matches() ? KINDS.get(form.group(2)) : null;
        if (kind == null) {
            throw new IllegalArgumentException("a load must be [COUNTx]KIND[:KEY=VALUE,...], with a kind flight, wait,"
                + " burst, long or idle: " + text);
        }
        Map<String, String> values = values(form.group(3));
        Load load = new Load(text, form.group(2), integer("count", form.group(1), 1, MAX_TENANTS),
            integer("weight", values.remove("weight"), 100, 1_000_000), integer("gpus", values.remove("gpus"), 1, 64),
            time(values.remove("kernel"), kind.kernelNs), kernels(values.remove("kernels"), kind.kernels),
            integer("window", values.remove("window"), kind.window, 128),
            time(values.remove("pause"), kind.pauseNs), part(values.remove("jitter"), kind.jitter),
            time(values.remove("from"), 0), time(values.remove("until"), Long.MAX_VALUE));
        if (!values.isEmpty()) {
            throw new IllegalArgumentException("a load must have the keys weight, gpus, kernel, kernels, window, pause,"
                + " jitter, from and until only: " + values.keySet());
        }
        if (load.kernelNs == 0 || load.untilNs <= load.fromNs) {
            throw new IllegalArgumentException("a kernel must take time, and a tenant join before it leaves: " + text);
        }
        return load;
    }

    private static Map<String, String> values(String text) {
        Map<String, String> values = new HashMap<>();
        for (String pair : text == null ? new String[0] : text.split(",", -1)) {
            String[] sides = pair.split("=", -1);
            if (sides.length != 2 || values.put(sides[0], sides[1]) != null) {
                throw new IllegalArgumentException("a load's values must be KEY=VALUE, each key once: " + pair);
            }
        }
        return values;
    }

    private static int integer(String key, String text, int otherwise, int max) {
        int value = text == null ? otherwise : text.matches("[0-9]{1,7}") ? Integer.parseInt(text) : 0;
        if (value < 1 || value > max) {
            throw new IllegalArgumentException("a load's " + key + " must be 1 to " + max + ": " + text);
        }
        return value;
    }

    private static long kernels(String text, long otherwise) {
        return text == null ? otherwise : integer("kernels", text, 1, 1_000_000);
    }

    private static long time(String text, long otherwise) {
        return text == null ? otherwise : Durations.parse(text);
    }

    private static double part(String text, double otherwise) {
        double value = text == null ? otherwise : text.matches("[0-9](\\.[0-9]{1,6})?") ? Double.parseDouble(text) : 2;
        if (value > 1) {
            throw new IllegalArgumentException("a load's jitter must be 0 to 1: " + text);
        }
        return value;
    }

    /**
     * The work of one tenant.
     *
     * @param seed of its pauses and kernels; the same seed gives the same work.
     */
    public Work work(long seed) {
        Random random = new Random(seed);
        boolean[] begun = new boolean[1];
        return round -> {
            if (kernels == 0) {
                round.set(Long.MAX_VALUE, kernelNs, 1, 1);
                return;
            }
            double pause = begun[0] ? pauseNs * vary(random) : jitter * random.nextDouble() * (pauseNs + kernelNs);
            begun[0] = true;
            round.set((long) pause, kernelNs * vary(random), kernels, window);
        };
    }

    private double vary(Random random) {
        return 1 + jitter * (random.nextDouble() - 0.5);
    }

    /** Parses several loads and checks their number. */
    public static List<Load> parse(List<String> texts) {
        List<Load> loads = texts.stream().map(Load::parse).toList();
        int tenants = loads.stream().mapToInt(Load::tenants).sum();
        if (tenants < 1 || tenants > MAX_TENANTS) {
            throw new IllegalArgumentException("there must be 1 to " + MAX_TENANTS + " tenants: " + tenants);
        }
        return loads;
    }
}
