package io.hawser.shm.ring;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The cases that C's ring_cases_test runs as well. */
class RingCasesTest {
    private static final Path CASES = Path.of(System.getProperty("hawser.root"),
        "shm-transport/layout/src/test/resources/ring_cases.txt");
    private static final long HEAD = 0;
    private static final long TAIL = 64;
    private static final long RING = 128;

    private MemorySegment region;
    private RingWriter writer;
    private RingReader reader;
    private long ringBytes;

    @TestFactory
    Stream<DynamicTest> shouldGiveTheResultsOfTheCases() throws IOException {
        List<DynamicTest> tests = new ArrayList<>();
        List<String> lines = new ArrayList<>();
        String name = null;
        int number = 0;
        for (String line : Files.readAllLines(CASES)) {
            number++;
            if (line.startsWith("case ")) {
                add(tests, name, lines);
                name = line.substring(5);
                lines = new ArrayList<>();
            } else if (!line.isBlank() && !line.startsWith("#")) {
                lines.add(number + " " + line);
            }
        }
        add(tests, name, lines);
        assertTrue(tests.size() > 20, "the cases must be there: " + tests.size());
        return tests.stream();
    }

    private static void add(List<DynamicTest> tests, String name, List<String> lines) {
        if (name != null) {
            tests.add(dynamicTest(name, () -> {
                RingCasesTest test = new RingCasesTest();
                try (Arena arena = Arena.ofConfined()) {
                    for (String line : lines) {
                        test.run(arena, line, line.split(" "));
                    }
                }
            }));
        }
    }

    private void run(Arena arena, String line, String[] words) {
        long number = words.length > 2 && !words[2].equals("corrupt") ? Long.parseUnsignedLong(words[2]) : 0;
        switch (words[1]) {
            case "ring" -> {
                ringBytes = number;
                region = arena.allocate(RING + ringBytes, 64);
                attach(words.length > 3 ? Long.parseUnsignedLong(words[3]) : 0);
            }
            case "restart" -> attach(0);
            case "put" -> writer.put(stream(writer.position(), number), 0, number);
            case "take" -> {
                byte[] expected = stream(reader.position(), number).toArray(ValueLayout.JAVA_BYTE);
                byte[] target = new byte[(int) number + 2];
                reader.take(MemorySegment.ofArray(target), 1, number);
                assertEquals(0, target[0], line);
                assertEquals(0, target[(int) number + 1], line);
                assertArrayEquals(expected, Arrays.copyOfRange(target, 1, (int) number + 1), line);
            }
            case "commit" -> writer.commit();
            case "abort" -> writer.abort();
            case "release" -> reader.release();
            case "room" -> assertEquals(words[2], room(), line);
            case "available" -> assertEquals(words[2], available(), line);
            case "fits" -> assertTrue(writer.hasRoom(number), line);
            case "full" -> assertFalse(writer.hasRoom(number), line);
            case "head" -> assertEquals(number, region.get(ValueLayout.JAVA_LONG, HEAD), line);
            case "tail" -> assertEquals(number, region.get(ValueLayout.JAVA_LONG, TAIL), line);
            case "byte" -> assertEquals(Long.parseLong(words[3]), region.get(ValueLayout.JAVA_BYTE, RING + number)
                & 0xff, line);
            case "poke-head" -> region.set(ValueLayout.JAVA_LONG, HEAD, number);
            case "poke-tail" -> region.set(ValueLayout.JAVA_LONG, TAIL, number);
            default -> throw new AssertionError("unknown word: " + line);
        }
    }

    private void attach(long position) {
        region.set(ValueLayout.JAVA_LONG, HEAD, position);
        region.set(ValueLayout.JAVA_LONG, TAIL, position);
        writer = new RingWriter(region, RING, ringBytes, HEAD, TAIL, position);
        reader = new RingReader(region, RING, ringBytes, HEAD, TAIL, position);
    }

    private String room() {
        try {
            return Long.toString(writer.room());
        } catch (RingCorruptException e) {
            return "corrupt";
        }
    }

    private String available() {
        try {
            return Long.toString(reader.available());
        } catch (RingCorruptException e) {
            return "corrupt";
        }
    }

    private static MemorySegment stream(long position, long bytes) {
        byte[] stream = new byte[(int) bytes];
        for (int i = 0; i < bytes; i++) {
            stream[i] = (byte) Long.remainderUnsigned((position + i) * 31 + 7, 251);
        }
        return MemorySegment.ofArray(stream);
    }
}
