package io.hawser.turns;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.turns.TurnPage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The text of recordings: encoder and reader. */
class RecordingTest {
    private static final TurnRules RULES = new TurnRules(4_000_000, 20_000_000, 100_000, 5, 3, 2);
    private static final String BEGIN = "hawser-turns 1\nrules 1 0 0 8 4 8\n";

    private static byte[] sample() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        RecordingEncoder encoder = new RecordingEncoder((line, length) -> out.write(line, 0, length), RULES, -50);
        encoder.joined(-50, 1, "a vGPU, naïve\n", 100, List.of("GPU-1", "a,b"));
        encoder.joined(-49, 2, "b", Integer.MAX_VALUE, List.of());
        encoder.leftEqual(true);
        encoder.looked(0, 1);
        encoder.read(1, TurnPage.BUSY);
        encoder.permitted(2, TurnPage.NEXT);
        encoder.weighed(7, "b", 3);
        encoder.left(Long.MAX_VALUE / 8, 2);
        encoder.abandoned(Long.MAX_VALUE / 8);
        return out.toByteArray();
    }

    private static List<TurnEvent> read(byte[] bytes) throws IOException, RecordingException {
        RecordingReader reader = new RecordingReader(new ByteArrayInputStream(bytes));
        List<TurnEvent> events = new ArrayList<>();
        for (TurnEvent event = reader.next(); event != null; event = reader.next()) {
            events.add(event);
        }
        return events;
    }

    @Test
    void shouldReadWhatTheEncoderWrote() throws Exception {
        byte[] bytes = sample();
        assertEquals(RULES, new RecordingReader(new ByteArrayInputStream(bytes)).rules());
        assertEquals(List.of(new TurnEvent.Joined(0, 1, "a vGPU, naïve\n", 100, List.of("GPU-1", "a,b")),
            new TurnEvent.Joined(1, 2, "b", Integer.MAX_VALUE, List.of()), new TurnEvent.LeftEqual(true),
            new TurnEvent.Looked(50, 1), new TurnEvent.Read(1, TurnPage.BUSY),
            new TurnEvent.Permitted(2, TurnPage.NEXT), new TurnEvent.Weighed(57, "b", 3),
            new TurnEvent.Left(Long.MAX_VALUE / 8 + 50, 2), new TurnEvent.Abandoned(Long.MAX_VALUE / 8 + 50)),
            read(bytes));
        String text = new String(bytes, StandardCharsets.US_ASCII);
        assertTrue(text.contains("\njoin 0 1 a+vGPU%2C+na%C3%AFve%0A 100 GPU-1,a%2Cb\n"), text);
    }

    @Test
    void shouldIgnoreAnUnfinishedLastLine() throws Exception {
        assertEquals(List.of(new TurnEvent.Joined(1, 1, "a", 1, List.of("g"))),
            read((BEGIN + "join 1 1 a 1 g\nlook 2").getBytes(StandardCharsets.US_ASCII)));
    }

    private static void assertError(String text, String message) {
        RecordingException error = assertThrows(RecordingException.class,
            () -> read(text.getBytes(StandardCharsets.UTF_8)), text);
        assertTrue(error.getMessage().contains(message), error.getMessage());
    }

    @Test
    void shouldNameTheLineOfAnError() {
        assertError("", "line 1: a recording must begin with the line \"hawser-turns 1\"");
        assertError("hawser-turns 2\n", "line 1: a recording must begin");
        assertError("hawser-turns 1\nrules 1 2\n", "line 2: the second line must be");
        assertError("hawser-turns 1\nrules 0 0 0 8 4 8\n", "line 2: turns need a quantum over 0");
        assertError(BEGIN + "sleep 1\n", "line 3: an event must be join");
        assertError(BEGIN + "look 1 1\n", "line 3: a seat must have joined");
        assertError(BEGIN + "join 5 1 a 1 g\nlook 4 1\n", "line 4: a time must not go back");
        assertError(BEGIN + "join 5 1 a 1 g\njoin 6 1 b 1 g\n", "line 4: a new seat's number must exceed");
        assertError(BEGIN + "join 5 1 a 0 g\n", "line 3: a number of a seat, a weight");
        assertError(BEGIN + "join 5 1 % 1 g\n", "line 3: a name must be URL-encoded");
        assertError(BEGIN + "join 5 1  1 g\n", "line 3: a name must not be empty");
        assertError(BEGIN + "join 5 1 a 1 g\nstate 1 asleep\n", "line 4: the word must be one of idle, wants, busy");
        assertError(BEGIN + "join -5 1 a 1 g\n", "line 3: a number must have digits only");
        assertError(BEGIN + "equal 2\n", "line 3: a number must be at most 1");
        assertError(BEGIN + "abandon 1 2\n", "line 3: \"abandon\" must have 1 words behind it");
        assertError(BEGIN + "abandon é\n", "line 3: a line must have printable ASCII");
        assertError(BEGIN + "a".repeat(70_000), "line 3: a line must have at most 65536");
    }

    /** Any bytes either parse or give an error that names a line, and nothing else. */
    @Test
    void shouldParseOrRefuseAnyBytes() throws IOException {
        byte[] sample = sample();
        int parsed = 0;
        for (int seed = 0; seed < 20_000; seed++) {
            Random random = new Random(seed);
            boolean isCut = random.nextInt(4) == 0;
            byte[] bytes = Arrays.copyOf(sample, isCut ? random.nextInt(sample.length) : sample.length);
            for (int i = random.nextInt(3); i >= 0 && bytes.length > 0; i--) {
                int at = random.nextInt(bytes.length);
                bytes[at] = (byte) (random.nextBoolean() ? random.nextInt(256) : sample[random.nextInt(sample.length)]);
            }
            try {
                read(bytes);
                parsed++;
            } catch (RecordingException e) {
                assertTrue(e.getMessage().startsWith("line "), e.getMessage());
            }
        }
        assertTrue(parsed > 100 && parsed < 19_900, "both outcomes must occur: parsed=" + parsed);
    }
}
