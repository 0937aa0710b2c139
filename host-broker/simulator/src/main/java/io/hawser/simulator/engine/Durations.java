package io.hawser.simulator.engine;

import java.math.BigDecimal;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Lengths of time as a number and a unit: {@code 50us}, {@code 0.1ms}, {@code 4ms}, {@code 2s}. */
public final class Durations {
    private static final Pattern FORM = Pattern.compile("([0-9]{1,9}(?:\\.[0-9]{1,9})?)(ns|us|ms|s)");
    private static final Map<String, Long> UNITS_NS = Map.of("ns", 1L, "us", 1_000L, "ms", 1_000_000L,
        "s", 1_000_000_000L);

    private Durations() {
    }

    /**
     * Parses a length of time.
     *
     * @return nanoseconds, 0 or more.
     * @throws IllegalArgumentException if the text has another form.
     */
    public static long parse(String text) {
        Matcher form = FORM.matcher(text);
        if (text.equals("0")) {
            return 0;
        } else if (!form.matches()) {
            throw new IllegalArgumentException("a time must be a number and ns, us, ms or s, such as 0.5ms: " + text);
        }
        return new BigDecimal(form.group(1)).multiply(BigDecimal.valueOf(UNITS_NS.get(form.group(2)))).longValue();
    }

    /** Prints a time with three digits or less, in a fitting unit. */
    public static String format(double ns) {
        double value = ns;
        for (String unit : new String[] {"ns", "us", "ms"}) {
            if (value < 999.5) {
                return digits(value) + " " + unit;
            }
            value /= 1000;
        }
        return digits(value) + " s";
    }

    private static String digits(double value) {
        int decimals = value >= 99.95 || value == Math.rint(value) ? 0 : value >= 9.995 ? 1 : 2;
        return String.format(Locale.ROOT, "%." + decimals + "f", value);
    }
}
