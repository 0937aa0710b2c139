package io.hawser.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import org.junit.jupiter.api.Test;

class JsonTest {
    @Test
    void shouldWriteWhatItHasRead() throws IOException {
        String text = "{\"b\":[1,-2.5,true,null,\"ä\\\"\\n\"],\"a\":{},\"n\":9007199254740993}";
        assertEquals(text, Json.line(Json.read(text)));
        assertEquals(Json.read(text), Json.read(Json.pretty(Json.read(text))));
    }

    @Test
    void shouldRejectTextThatIsNotJson() {
        for (String text : new String[] {"", "{", "[1,]", "{} {}", "<html>", "{\"a\" 1}"}) {
            assertThrows(IOException.class, () -> Json.read(text), text);
        }
    }

    @Test
    void shouldReadMissingFieldsAsEmpty() throws IOException {
        Item item = Item.of(Json.read("{\"n\":null,\"l\":[\"a\",\"b\"],\"x\":\"text\"}"));
        assertEquals("", item.text("none"));
        assertEquals("", item.text("n"));
        assertEquals("a,b", item.text("l"));
        assertEquals(0, item.number("x"));
        assertEquals("", item.item("none").text("x"));
        assertThrows(ClientException.class, () -> Item.list(Json.read("{}")));
        assertThrows(ClientException.class, () -> Item.of(Json.read("[]")));
    }
}
