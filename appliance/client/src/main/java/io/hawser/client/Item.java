package io.hawser.client;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A JSON object of the REST interface. A field that a broker of another version lacks is empty or 0, never a failure.
 */
public record Item(Map<?, ?> fields) {
    /** Converts an answer that must be an object. */
    public static Item of(Object json) {
        if (json instanceof Map<?, ?> object) {
            return new Item(object);
        }
        throw new ClientException(Failure.REFUSED, "the broker did not answer with an object");
    }

    /** Converts an answer that must be a list of objects. */
    public static List<Item> list(Object json) {
        if (json instanceof List<?> list) {
            return list.stream().map(Item::of).toList();
        }
        throw new ClientException(Failure.REFUSED, "the broker did not answer with a list");
    }

    /** Whether the field has a value. */
    public boolean has(String name) {
        return fields.get(name) != null;
    }

    /** The field as text; empty if it has no value. Commas separate the elements of a list. */
    public String text(String name) {
        return switch (fields.get(name)) {
            case null -> "";
            case List<?> list -> list.stream().map(String::valueOf).collect(Collectors.joining(","));
            case Object value -> value.toString();
        };
    }

    /** The text of a field that dots lead to: {@code owner.id}. A label's key may contain dots itself. */
    public String path(String path) {
        int dot = path.indexOf('.');
        return dot < 0 || fields.containsKey(path) ? text(path) : item(path.substring(0, dot)).path(path.substring(dot
            + 1));
    }

    /** The field as a number; 0 if it has no value. */
    public long number(String name) {
        return fields.get(name) instanceof Number number ? number.longValue() : 0;
    }

    /** The object in the field; an empty one if it has no value. */
    public Item item(String name) {
        return fields.get(name) instanceof Map<?, ?> object ? new Item(object) : new Item(Map.of());
    }

    /** The objects of the list in the field; none if it has no value. */
    public List<Item> items(String name) {
        return fields.get(name) instanceof List<?> list
            ? list.stream().filter(Map.class::isInstance).map(Item::of).toList() : List.of();
    }
}
