package io.hawser.cuda.generator.model;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * The committed list of a library's numbers on the wire: opcodes and kinds of handles. A number never changes and is
 * never reused, so that guests and brokers of different versions cannot confuse two calls.
 */
public final class OpcodeLock {
    /** File in each library's folder. */
    public static final String FILE = "opcodes.lock";

    /** The command to run after adding a function to a description. */
    public static final String COMMAND = "cuda-api/update-lock";

    private static final String HEAD = "# Numbers on the wire, permanent. Written by the generator: " + COMMAND + "\n";

    private final Map<String, String> locked;

    private OpcodeLock(Map<String, String> locked) {
        this.locked = locked;
    }

    /** Reads the file's text. */
    public static OpcodeLock parse(String text) {
        Map<String, String> locked = new LinkedHashMap<>();
        text.lines().filter(line -> !line.isBlank() && !line.startsWith("#")).forEach(line -> {
            String[] words = line.split(" ");
            locked.put(words[0] + " " + words[1], words[2]);
        });
        return new OpcodeLock(locked);
    }

    /**
     * Checks a library against its lock.
     *
     * @throws DescriptionException if a number changed, vanished or is not locked yet.
     */
    public void check(Library library) {
        Map<String, String> now = numbers(library);
        refuseChanges(now);
        now.forEach((number, name) -> {
            if (!locked.containsKey(number)) {
                throw new DescriptionException(name + ": a new number must be locked: number=" + number + "; run "
                    + COMMAND);
            }
        });
    }

    /**
     * The file's text with the library's new numbers.
     *
     * @throws DescriptionException if a locked number changed or vanished, which is always an error.
     */
    public String updated(Library library) {
        Map<String, String> now = numbers(library);
        refuseChanges(now);
        StringBuilder text = new StringBuilder(HEAD);
        now.forEach((number, name) -> text.append(number).append(' ').append(name).append('\n'));
        return text.toString();
    }

    private void refuseChanges(Map<String, String> now) {
        locked.forEach((number, name) -> {
            if (!name.equals(now.get(number))) {
                throw new DescriptionException(name + ": a locked number must not change or vanish: number=" + number
                    + ", now=" + now.get(number) + "; give the function its number back (a retired one keeps its"
                    + " entry in the description)");
            }
        });
    }

    private static Map<String, String> numbers(Library library) {
        Map<String, String> numbers = new TreeMap<>();
        library.types().kinds().forEach(kind -> put(numbers, String.format("kind %04d", kind.number()), kind.name()));
        for (ApiFunction function : library.travelling()) {
            put(numbers, String.format("opcode 0x%04x", function.opcode() & 0xFFFF), function.symbol());
        }
        return numbers;
    }

    private static void put(Map<String, String> numbers, String number, String name) {
        String other = numbers.put(number, name);
        if (other != null) {
            throw new DescriptionException(name + ": a number must be used once: number=" + number + ", other="
                + other);
        }
    }
}
