package io.hawser.ctl;

import java.io.IOException;
import java.util.Iterator;
import java.util.NoSuchElementException;

/** Server-sent events out of lines (HTML standard, 9.2): name and data; comments and ids are passed over. */
public final class EventReader implements Iterator<EventReader.Event> {
    /** What one event may hold: stops a server that never ends a line of an event from taking all memory. */
    private static final int MAX_CHARACTERS = 64 << 20;

    /** An event; {@code name} is {@code message} when it has none. */
    public record Event(String name, String text) {
        /** Its data as JSON. */
        public Item json() {
            try {
                return Item.of(Json.read(text));
            } catch (IOException e) {
                throw new CtlException(ExitCode.REFUSED, "the stream is not Hawser's: " + Problems.of(e));
            }
        }
    }

    private final Iterator<String> lines;
    private Event next;

    /** Reads from these lines, as long as there are any. */
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
                    throw new CtlException(ExitCode.REFUSED, "an event of the stream is too long");
                }
            }
        }
        return null; // what is not ended by an empty line is no event
    }
}
