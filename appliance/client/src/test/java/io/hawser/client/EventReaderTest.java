package io.hawser.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventReaderTest {
    private static List<EventReader.Event> read(String text) {
        List<EventReader.Event> events = new ArrayList<>();
        new EventReader(text.lines().iterator()).forEachRemaining(events::add);
        return events;
    }

    @Test
    void shouldReadNamesAndData() {
        assertEquals(List.of(new EventReader.Event("picture", "{\n1}"), new EventReader.Event("message", "x: y")),
            read(": a comment\nid: 4\nevent: picture\ndata: {\ndata:1}\n\n\n\nevent: lost\n\ndata: x: y\n\n"));
    }

    @Test
    void shouldDropAnIncompleteEvent() {
        assertEquals(List.of(), read("event: change\ndata: {}"));
        assertFalse(new EventReader(List.<String>of().iterator()).hasNext());
    }
}
