package io.hawser.ctl;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * An object of the interface. A field that a broker of another version does not have is empty or 0, never a failure.
 */
public record Item(Map<?, ?> fields) {
    /** What the broker has sent where an object belongs. */
    public static Item of(Object json) {
        if (json instanceof Map<?, ?> object) {
            return new Item(object);
        }
        throw new CtlException(ExitCode.REFUSED, "the broker did not answer with an object");
    }

    /** What the broker has sent where a list of objects belongs. */
    public static List<Item> list(Object json) {
        if (json instanceof List<?> list) {
            return list.stream().map(Item::of).toList();
        }
        throw new CtlException(ExitCode.REFUSED, "the broker did not answer with a list");
    }

    /** Whether there is a value. */
    public boolean has(String name) {
        return fields.get(name) != null;
    }

    /** As text; empty when there is none. A list has commas. */
    public String text(String name) {
        return switch (fields.get(name)) {
            case null -> "";
            case List<?> list -> list.stream().map(String::valueOf).collect(Collectors.joining(","));
            case Object value -> value.toString();
        };
    }

    /** As a number; 0 when there is none. */
    public long number(String name) {
        return fields.get(name) instanceof Number number ? number.longValue() : 0;
    }

    /** An object inside; an empty one when there is none. */
    public Item item(String name) {
        return fields.get(name) instanceof Map<?, ?> object ? new Item(object) : new Item(Map.of());
    }

    /** A list of objects inside; empty when there is none. */
    public List<Item> items(String name) {
        return fields.get(name) instanceof List<?> list
            ? list.stream().filter(Map.class::isInstance).map(Item::of).toList() : List.of();
    }
}
