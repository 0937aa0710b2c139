package io.hawser.gpu.software.exec;

import java.io.ByteArrayOutputStream;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Formats as CUDA's device printf does: C's conversions except %n and *. */
final class Printf {
    private static final int MAX_WIDTH = 1 << 12; // the kernel's format chooses the width, which sizes a host buffer

    private final Globals g;
    private final CtaSlot c;
    private final int t;
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private long next;
    private int items;

    private boolean left;
    private boolean plus;
    private boolean space;
    private boolean alternate;
    private boolean zero;
    private int width;
    private int precision;

    Printf(Globals g, CtaSlot c, int t, long arguments) {
        this.g = g;
        this.c = c;
        this.t = t;
        this.next = arguments;
    }

    byte[] bytes() {
        return out.toByteArray();
    }

    /** Formats a string; returns the number of arguments, as the device's printf does. */
    int run(byte[] format) {
        int at = 0;
        while (at < format.length) {
            if (format[at] != '%') {
                out.write(format[at++]);
            } else if (at + 1 < format.length && format[at + 1] == '%') {
                out.write('%');
                at += 2;
            } else {
                at = conversion(format, at);
            }
        }
        return items;
    }

    private int conversion(byte[] format, int start) {
        int at = start + 1;
        left = false;
        plus = false;
        space = false;
        alternate = false;
        zero = false;
        for (; at < format.length && "-+ #0".indexOf(format[at]) >= 0; at++) {
            switch (format[at]) {
                case '-' -> left = true;
                case '+' -> plus = true;
                case ' ' -> space = true;
                case '#' -> alternate = true;
                default -> zero = true;
            }
        }
        width = 0;
        if (at < format.length && format[at] == '*') {
            width = word();
            at++;
            if (width < 0) {
                left = true;
                width = -width;
            }
        }
        for (; at < format.length && digit(format[at]); at++) {
            width = Math.min(width * 10 + format[at] - '0', MAX_WIDTH);
        }
        width = Math.min(width, MAX_WIDTH);
        precision = -1;
        if (at < format.length && format[at] == '.') {
            at++;
            precision = 0;
            if (at < format.length && format[at] == '*') {
                precision = Math.min(word(), MAX_WIDTH);
                at++;
            }
            for (; at < format.length && digit(format[at]); at++) {
                precision = Math.min(precision * 10 + format[at] - '0', MAX_WIDTH);
            }
        }
        StringBuilder length = new StringBuilder();
        for (; at < format.length && "hlLqjzt".indexOf(format[at]) >= 0; at++) {
            length.append((char) format[at]);
        }
        if (at == format.length) {
            out.write(format, start, format.length - start);
            return at;
        }
        one((char) format[at], length.toString(), format, start, at);
        return at + 1;
    }

    private static boolean digit(byte b) {
        return b >= '0' && b <= '9';
    }

    private int word() {
        next = next + 3 & ~3L;
        int value = Mem.ld32(g, c, t, next);
        next += 4;
        items++;
        return value;
    }

    private long wide() {
        next = next + 7 & ~7L;
        long value = Mem.ld64(g, c, t, next);
        next += 8;
        items++;
        return value;
    }

    private void one(char conversion, String length, byte[] format, int start, int at) {
        boolean isWide = length.contains("l") || length.contains("j") || length.contains("z") || length.contains("t")
            || length.contains("q") || length.contains("L");
        switch (conversion) {
            case 'd', 'i' -> {
                long value = isWide ? wide() : word();
                value = length.equals("hh") ? (byte) value : length.equals("h") ? (short) value : value;
                integer(BigInteger.valueOf(value).abs().toString(), sign(value < 0), value == 0);
            }
            case 'u', 'x', 'X', 'o' -> {
                long value = isWide ? wide() : word() & 0xFFFFFFFFL;
                value = length.equals("hh") ? value & 0xFF : length.equals("h") ? value & 0xFFFF : value;
                unsigned(value, conversion);
            }
            case 'c' -> pad("", new byte[] {(byte) word()}, false);
            case 's' -> {
                long address = wide();
                byte[] text = address == 0 ? "(null)".getBytes(StandardCharsets.UTF_8)
                    : Builtins.string(g, c, t, address);
                pad("", precision >= 0 && precision < text.length ? java.util.Arrays.copyOf(text, precision) : text,
                    false);
            }
            case 'p' -> {
                long value = wide();
                // An H200 prints the same: its driver prints with glibc's words.
                String text = value == 0 ? "(nil)" : "0x" + Long.toHexString(value);
                pad("", text.getBytes(StandardCharsets.US_ASCII), false);
            }
            case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A' -> floating(Double.longBitsToDouble(wide()), conversion);
            default -> out.write(format, start, at + 1 - start);
        }
    }

    private String sign(boolean negative) {
        return negative ? "-" : plus ? "+" : space ? " " : "";
    }

    private void unsigned(long value, char conversion) {
        String digits = switch (conversion) {
            case 'u' -> Long.toUnsignedString(value);
            case 'o' -> Long.toOctalString(value);
            case 'x' -> Long.toHexString(value);
            default -> Long.toHexString(value).toUpperCase(Locale.ROOT);
        };
        String prefix = alternate && value != 0 && conversion != 'u' && conversion != 'o' ? "0" + conversion : "";
        if (alternate && conversion == 'o' && value != 0) {
            digits = "0" + digits;
        }
        integer(digits, prefix, value == 0);
    }

    private void integer(String digits, String prefix, boolean isZero) {
        String text = precision == 0 && isZero ? "" : digits;
        if (precision > text.length()) {
            text = "0".repeat(precision - text.length()) + text;
        }
        pad(prefix, text.getBytes(StandardCharsets.US_ASCII), zero && precision < 0);
    }

    private void pad(String prefix, byte[] text, boolean zeros) {
        int fill = Math.max(0, width - prefix.length() - text.length);
        if (!left && !zeros) {
            out.writeBytes(" ".repeat(fill).getBytes(StandardCharsets.US_ASCII));
        }
        out.writeBytes(prefix.getBytes(StandardCharsets.US_ASCII));
        if (!left && zeros) {
            out.writeBytes("0".repeat(fill).getBytes(StandardCharsets.US_ASCII));
        }
        out.writeBytes(text);
        if (left) {
            out.writeBytes(" ".repeat(fill).getBytes(StandardCharsets.US_ASCII));
        }
    }

    private void floating(double value, char conversion) {
        boolean upper = Character.isUpperCase(conversion);
        boolean negative = Double.doubleToRawLongBits(value) < 0;
        String text;
        boolean finite = Double.isFinite(value);
        if (!finite) {
            text = Double.isNaN(value) ? "nan" : "inf";
        } else {
            double magnitude = Math.abs(value);
            text = switch (Character.toLowerCase(conversion)) {
                case 'f' -> fixed(magnitude, precision < 0 ? 6 : precision);
                case 'e' -> exponent(magnitude, precision < 0 ? 6 : precision);
                case 'g' -> general(magnitude, precision < 0 ? 6 : Math.max(precision, 1));
                default -> hexadecimal(magnitude);
            };
        }
        String prefix = sign(negative);
        if (finite && Character.toLowerCase(conversion) == 'a') {
            prefix += "0x";
        }
        text = upper ? text.toUpperCase(Locale.ROOT) : text;
        pad(upper ? prefix.toUpperCase(Locale.ROOT) : prefix, text.getBytes(StandardCharsets.US_ASCII),
            zero && finite);
    }

    private String point(String text) {
        return alternate && text.indexOf('.') < 0 ? text + "." : text;
    }

    private String fixed(double value, int digits) {
        return point(new BigDecimal(value).setScale(digits, RoundingMode.HALF_EVEN).toPlainString());
    }

    /** The decimal exponent and digits of a value rounded to 1 + digits places. */
    private static BigDecimal rounded(double value, int digits) {
        return new BigDecimal(value).round(new java.math.MathContext(digits + 1, RoundingMode.HALF_EVEN));
    }

    private static int exponentOf(BigDecimal value) {
        return value.signum() == 0 ? 0 : value.precision() - value.scale() - 1;
    }

    private String exponent(double value, int digits) {
        BigDecimal near = rounded(value, digits);
        int exponent = exponentOf(near);
        String mantissa = near.signum() == 0 ? fixed(0, digits)
            : point(near.movePointLeft(exponent).setScale(digits, RoundingMode.UNNECESSARY).toPlainString());
        return mantissa + tail(exponent);
    }

    private static String tail(int exponent) {
        int magnitude = Math.abs(exponent);
        return (exponent < 0 ? "e-" : "e+") + (magnitude < 10 ? "0" : "") + magnitude;
    }

    private String general(double value, int digits) {
        int exponent = exponentOf(rounded(value, digits - 1));
        boolean scientific = exponent < -4 || exponent >= digits;
        String text = scientific ? exponent(value, digits - 1) : fixed(value, digits - 1 - exponent);
        if (alternate) {
            return text;
        }
        int e = text.indexOf('e');
        String mantissa = e < 0 ? text : text.substring(0, e);
        if (mantissa.indexOf('.') >= 0) {
            mantissa = mantissa.replaceAll("0+$", "").replaceAll("\\.$", "");
        }
        return e < 0 ? mantissa : mantissa + text.substring(e);
    }

    private String hexadecimal(double value) {
        long bits = Double.doubleToRawLongBits(value);
        long fraction = bits & (1L << 52) - 1;
        int biased = (int) (bits >>> 52);
        int exponent = biased == 0 ? fraction == 0 ? 0 : -1022 : biased - 1023;
        long lead = biased == 0 ? 0 : 1;
        String digits;
        if (precision >= 0 && precision < 13) {
            int drop = 4 * (13 - precision);
            long whole = lead << 52 | fraction;
            long kept = whole >>> drop;
            long rest = whole & (1L << drop) - 1;
            long half = 1L << drop - 1;
            kept += rest > half || rest == half && (kept & 1) != 0 ? 1 : 0;
            lead = kept >>> 4 * precision;
            long low = kept & (1L << 4 * precision) - 1;
            digits = precision == 0 ? "" : String.format("%0" + precision + "x", low);
        } else {
            digits = String.format("%013x", fraction);
            digits = precision < 0 ? digits.replaceAll("0+$", "") : digits + "0".repeat(precision - 13);
        }
        return lead + (digits.isEmpty() && !alternate ? "" : ".") + digits + "p" + (exponent < 0 ? "" : "+") + exponent;
    }
}
