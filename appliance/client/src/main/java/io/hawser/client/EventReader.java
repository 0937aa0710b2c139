package io.hawser.client;

import java.io.IOException;
import java.util.Iterator;
import java.util.NoSuchElementException;

/** Parses server-sent events from lines (HTML standard, 9.2): name and data; ignores comments and ids. */
public final class EventReader implements Iterator<EventReader.Event> {
    /** Limits one event: a server that never ends an event could otherwise fill the memory. */
    private static final int MAX_CHARACTERS = 64 << 20;

    /** An event; {@code name} is {@code message} if the stream gives none. */
    public record Event(String name, String text) {
        /** Its data, parsed as JSON. */
        public Item json() {
            try {
                return Item.of(Json.read(text));
            } catch (IOException e) {
                throw new ClientException(Failure.REFUSED, "the stream is not Hawser's: " + Problems.of(e));
            }
        }
    }

    private final Iterator<String> lines;
    private Event next;

    /** Reads these lines to their end. */
    public EventReader(Iterator<String> lines) {
        this.lines = lines;
    }

    @Override
    public boolean hasNext() {
        if (next == null) {
            next = read();
        }
        return next != null;
    }

    @Override
    public Event next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        Event event = next;
        next = null;
        return event;
    }

    private Event read() {
        String name = "message";
        StringBuilder data = null;
        while (lines.hasNext()) {
            String line = lines.next();
            if (line.isEmpty()) {
                if (data != null) {
                    return new Event(name, data.toString());
                }
                name = "message";
                continue;
            }
            int colon = line.indexOf(':');
            String field = colon < 0 ? line : line.substring(0, colon);
            String value = colon < 0 ? "" : line.substring(colon + 1);
            value = value.startsWith(" ") ? value.substring(1) : value;
            if (field.equals("event")) {
                name = value;
            } else if (field.equals("data")) {
                data = data == null ? new StringBuilder(value) : data.append('\n').append(value);
                if (data.length() > MAX_CHARACTERS) {
                    throw new ClientException(Failure.REFUSED, "an event of the stream is too long");
                }
            }
        }
        return null; // an event without a final empty line is not complete
    }
}
