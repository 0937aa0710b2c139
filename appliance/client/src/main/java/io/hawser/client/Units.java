package io.hawser.client;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Formats and parses sizes and times. */
public final class Units {
    private static final String PREFIXES = "KMGTP";
    private static final Pattern SIZE = Pattern.compile("(\\d+(?:\\.\\d+)?) ?([KMGTP]?)(?:iB|i|B)?",
        Pattern.CASE_INSENSITIVE);
    private static final Pattern TIME = Pattern.compile("(\\d+)([smhdw])");
    private static final DateTimeFormatter SHOWN = DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss");

    private Units() {
    }

    /**
     * Parses a size: {@code 16G}, {@code 1.5GiB}, {@code 4096}; all units are powers of 1024.
     *
     * @return bytes, 0 or more.
     * @throws IllegalArgumentException if it is invalid, or not below 8 EiB.
     */
    public static long bytes(String text) {
        Matcher matcher = SIZE.matcher(text);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("expected a size like 16G, 512M or 4096: " + text);
        }
        int power = matcher.group(2).isEmpty() ? 0
            : PREFIXES.indexOf(matcher.group(2).toUpperCase(Locale.ROOT)) + 1;
        java.math.BigDecimal bytes = new java.math.BigDecimal(matcher.group(1))
            .multiply(java.math.BigDecimal.valueOf(1L << 10 * power));
        try {
            return bytes.longValueExact();
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException("a size must be a whole number of bytes below 8 EiB: " + text, e);
        }
    }

    /** Formats a size with at most four digits and a unit. */
    public static String size(long bytes) {
        if (bytes < 1024) {
            return bytes + " B";
        }
        double value = bytes;
        int power = 0;
        while (value >= 1023.95 && power < PREFIXES.length()) {
            value /= 1024;
            power++;
        }
        String digits = String.format(Locale.ROOT, "%.1f", value);
        return (digits.endsWith(".0") ? digits.substring(0, digits.length() - 2) : digits) + " "
            + PREFIXES.charAt(power - 1) + "iB";
    }

    /** Formats a count: 999, 12.3k, 4.5M. */
    public static String count(double number) {
        if (number < 1000) {
            return String.format(Locale.ROOT, "%.0f", number);
        }
        double value = number;
        int power = 0;
        while (value >= 999.95 && power < 4) {
            value /= 1000;
            power++;
        }
        return String.format(Locale.ROOT, "%.1f%s", value, "kMGT".charAt(power - 1));
    }

    /**
     * Parses a point in time: {@code 30d} from now (s, m, h, d, w), {@code 2027-01-31T12:00:00Z}, or local time {@code
     * 2027-01-31T12:00}.
     *
     * @throws IllegalArgumentException if it is invalid.
     */
    public static Instant instant(String text, Instant now) {
        Matcher matcher = TIME.matcher(text);
        try {
            if (matcher.matches()) {
                long number = Long.parseLong(matcher.group(1));
                return now.plus(switch (matcher.group(2)) {
                    case "s" -> Duration.ofSeconds(number);
                    case "m" -> Duration.ofMinutes(number);
                    case "h" -> Duration.ofHours(number);
                    case "d" -> Duration.ofDays(number);
                    default -> Duration.ofDays(Math.multiplyExact(7, number));
                });
            }
            return text.endsWith("Z") ? Instant.parse(text)
                : LocalDateTime.parse(text).atZone(ZoneId.systemDefault()).toInstant();
        } catch (java.time.DateTimeException | ArithmeticException | NumberFormatException e) {
            throw new IllegalArgumentException("expected a time like 30d, 12h, 2027-01-31T12:00 or "
                + "2027-01-31T12:00:00Z: " + text, e);
        }
    }

    /** Converts a time of the broker to local time; returns invalid text unchanged. */
    public static String local(String instant) {
        try {
            return SHOWN.format(Instant.parse(instant).atZone(ZoneId.systemDefault()));
        } catch (java.time.format.DateTimeParseException e) {
            return instant;
        }
    }

    /** The age of a broker's time: 42s, 5m, 3h, 12d. Empty if the time is invalid. */
    public static String age(String instant, Instant now) {
        long seconds;
        try {
            seconds = Math.max(0, Duration.between(Instant.parse(instant), now).toSeconds());
        } catch (java.time.format.DateTimeParseException e) {
            return "";
        }
        if (seconds < 120) {
            return seconds + "s";
        } else if (seconds < 7200) {
            return seconds / 60 + "m";
        }
        return seconds < 172800 ? seconds / 3600 + "h" : seconds / 86400 + "d";
    }
}
