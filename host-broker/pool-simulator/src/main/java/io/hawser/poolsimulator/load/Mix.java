package io.hawser.poolsimulator.load;

import java.util.ArrayList;
import java.util.List;
import java.util.random.RandomGenerator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Values with weights, such as {@code 1g:8,5g:7,20g:1}. Immutable. */
public final class Mix {
    private static final Pattern PART = Pattern.compile("([0-9]{1,6})([mg]?)(?::([0-9]{1,6}))?");
    private static final int MIB_PER_GIB = 1024;

    private final List<Integer> values = new ArrayList<>();
    private final List<Integer> sums = new ArrayList<>(); // of the weights up to each value
    private int total;

    private Mix() {
    }

    /**
     * Parses memory sizes.
     *
     * @return values in MiB.
     * @throws IllegalArgumentException if the text has another form.
     */
    public static Mix sizes(String text) {
        return parse(text, "a size must be a number and m or g, with :WEIGHT, such as 5g:7", true);
    }

    /**
     * Parses numbers without units.
     *
     * @throws IllegalArgumentException if the text has another form.
     */
    public static Mix numbers(String text) {
        return parse(text, "a share must be a number, with :WEIGHT, such as 25:2", false);
    }

    private static Mix parse(String text, String rule, boolean isSize) {
        Mix mix = new Mix();
        for (String part : text.split(",", -1)) {
            Matcher matcher = PART.matcher(part);
            if (!matcher.matches() || matcher.group(2).isEmpty() == isSize) {
                throw new IllegalArgumentException(rule + ": " + part);
            }
            mix.total += matcher.group(3) == null ? 1 : Integer.parseInt(matcher.group(3));
            mix.values.add(Integer.parseInt(matcher.group(1)) * (matcher.group(2).equals("g") ? MIB_PER_GIB : 1));
            mix.sums.add(mix.total);
        }
        if (mix.total == 0) {
            throw new IllegalArgumentException("one weight must be over 0: " + text);
        }
        return mix;
    }

    /** A value by chance. */
    int pick(RandomGenerator random) {
        int at = random.nextInt(total);
        int i = 0;
        while (sums.get(i) <= at) {
            i++;
        }
        return values.get(i);
    }

    /** The least value. */
    public int least() {
        return values.stream().mapToInt(Integer::intValue).min().orElseThrow();
    }

    /** The greatest value. */
    public int most() {
        return values.stream().mapToInt(Integer::intValue).max().orElseThrow();
    }
}
