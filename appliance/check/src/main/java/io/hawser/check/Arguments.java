package io.hawser.check;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/** The arguments of a command line, one after the other. Errors name the option that was read last. One thread. */
final class Arguments {
    private final Iterator<String> rest;
    private String option = "";

    Arguments(String... arguments) {
        rest = Arrays.asList(arguments).iterator();
    }

    boolean hasNext() {
        return rest.hasNext();
    }

    /** Returns the next option. */
    String next() {
        option = rest.next();
        return option;
    }

    /** Returns the value of the option. */
    String value() throws UsageException {
        if (!rest.hasNext()) {
            throw new UsageException(option + " needs a value");
        }
        return rest.next();
    }

    /** Returns the option's value, a number within these limits. */
    int number(int least, int most) throws UsageException {
        return number(value(), least, most);
    }

    /** Returns a part of the option's value, a number within these limits. */
    int number(String text, int least, int most) throws UsageException {
        int number;
        try {
            number = Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw new UsageException(option + " needs a number: " + text);
        }
        if (number < least || number > most) {
            throw new UsageException(option + " needs a number of " + least + " to " + most + ": " + text);
        }
        return number;
    }

    /** Returns the option's value, one of these. */
    String oneOf(String... allowed) throws UsageException {
        String value = value();
        if (!List.of(allowed).contains(value)) {
            throw new UsageException(option + " needs one of " + String.join(", ", allowed) + ": " + value);
        }
        return value;
    }

    /** Returns the option's value, which matches a pattern. */
    String matching(String pattern, String example) throws UsageException {
        String value = value();
        if (!value.matches(pattern)) {
            throw new UsageException(option + " needs a value such as " + example + ": " + value);
        }
        return value;
    }

    /** Returns the different names of a list with commas; may be empty. */
    static List<String> list(String text) {
        return Arrays.stream(text.split(",")).map(String::strip).filter(s -> !s.isEmpty()).distinct().toList();
    }

    /** Returns the names of the option's value, at least one, all of them of these. */
    List<String> someOf(List<String> allowed) throws UsageException {
        String value = value();
        List<String> names = list(value);
        if (names.isEmpty() || !allowed.containsAll(names)) {
            throw new UsageException(option + " needs some of " + String.join(", ", allowed) + ": " + value);
        }
        return names;
    }

    /** Returns the ways of the option's value, at least one, all of them of these. */
    Set<Way> ways(Way... allowed) throws UsageException {
        List<String> names = someOf(Arrays.stream(allowed).map(Way::label).toList());
        Set<Way> ways = EnumSet.noneOf(Way.class);
        Arrays.stream(allowed).filter(way -> names.contains(way.label())).forEach(ways::add);
        return ways;
    }

    /** Returns the option's value, a setting of the broker. */
    String setting() throws UsageException {
        String value = value();
        if (!value.matches("hawser\\.[a-z0-9.-]+=.*")) {
            throw new UsageException(option + " needs a setting of the broker, such as hawser.pool.max-starting=8: "
                + value);
        }
        return value;
    }
}
