package io.hawser.turns;

import io.hawser.turns.TurnEvent.Abandoned;
import io.hawser.turns.TurnEvent.Joined;
import io.hawser.turns.TurnEvent.Left;
import io.hawser.turns.TurnEvent.LeftEqual;
import io.hawser.turns.TurnEvent.Looked;
import io.hawser.turns.TurnEvent.Permitted;
import io.hawser.turns.TurnEvent.Read;
import io.hawser.turns.TurnEvent.Weighed;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Reads a recording, event by event, and checks it: any bytes either give events that a replay can take, or an
 * exception. The last line does not count unless a line feed ends it, because a broker may have been killed. One
 * thread.
 *
 * @see RecordingEncoder
 */
public final class RecordingReader {
    private final InputStream in;
    private final TurnRules rules;
    private final byte[] bytes = new byte[RecordingFormat.MAX_LINE_BYTES];
    private final Set<Integer> present = new HashSet<>();
    private long line;
    private int lastSeat;
    private long lastNs;

    /**
     * Reads the first two lines.
     *
     * @param in stays open.
     * @throws RecordingException if the text is no recording, or one of another version.
     */
    public RecordingReader(InputStream in) throws IOException, RecordingException {
        this.in = new BufferedInputStream(in);
        String header = readLine();
        if (!RecordingFormat.HEADER.equals(header)) {
            throw error("a recording must begin with the line \"" + RecordingFormat.HEADER + "\"");
        }
        String text = readLine();
        String[] words = text == null ? new String[0] : text.split(" ", -1);
        if (words.length != 7 || !words[0].equals("rules")) {
            throw error("the second line must be \"rules\" and 6 numbers");
        }
        try {
            rules = new TurnRules(number(words[1], Long.MAX_VALUE), number(words[2], Long.MAX_VALUE),
                number(words[3], Long.MAX_VALUE), integer(words[4]), integer(words[5]), integer(words[6]));
        } catch (IllegalArgumentException e) {
            throw error(e.getMessage());
        }
    }

    /** The rules of the recorded decisions. */
    public TurnRules rules() {
        return rules;
    }

    /** The last time that was read, in nanoseconds since the start of the recording. */
    public long timeNs() {
        return lastNs;
    }

    /** Number of the last line that was read, from 1. */
    public long line() {
        return line;
    }

    /**
     * Reads the next event.
     *
     * @return null at the end.
     * @throws RecordingException if the line is no event, or one that cannot follow the earlier ones.
     */
    public TurnEvent next() throws IOException, RecordingException {
        String text = readLine();
        if (text == null) {
            return null;
        }
        String[] words = text.split(" ", -1);
        return switch (words[0]) {
            case "join" -> joined(words);
            case "leave" -> left(words);
            case "weight" -> weighed(words);
            case "look" -> new Looked(time(words, 3), seat(words[2]));
            case "state" -> new Read(seat(words, 3), index(words[2], RecordingFormat.STATES));
            case "permit" -> new Permitted(seat(words, 3), index(words[2], RecordingFormat.PERMITS));
            case "equal" -> leftEqual(words);
            case "abandon" -> new Abandoned(time(words, 2));
            default -> throw error("an event must be join, leave, weight, look, state, permit, equal or abandon");
        };
    }

    private TurnEvent joined(String[] words) throws RecordingException {
        boolean hasGpus = words.length == 6;
        long timeNs = time(words, hasGpus ? 6 : 5);
        int seat = integer(words[2]);
        if (seat <= lastSeat) {
            throw error("a new seat's number must exceed all earlier ones: seat=" + seat);
        }
        List<String> gpus = new ArrayList<>();
        for (String gpu : hasGpus ? words[5].split(",", -1) : new String[0]) {
            gpus.add(name(gpu));
        }
        Joined joined = new Joined(timeNs, seat, name(words[3]), integer(words[4]), gpus);
        lastSeat = seat;
        present.add(seat);
        return joined;
    }

    private TurnEvent left(String[] words) throws RecordingException {
        Left left = new Left(time(words, 3), seat(words[2]));
        present.remove(left.seat());
        return left;
    }

    private TurnEvent weighed(String[] words) throws RecordingException {
        return new Weighed(time(words, 4), name(words[2]), integer(words[3]));
    }

    private TurnEvent leftEqual(String[] words) throws RecordingException {
        demand(words, 2);
        return new LeftEqual(number(words[1], 1) == 1);
    }

    private void demand(String[] words, int count) throws RecordingException {
        if (words.length != count) {
            throw error("\"" + words[0] + "\" must have " + (count - 1) + " words behind it");
        }
    }

    private long time(String[] words, int count) throws RecordingException {
        demand(words, count);
        long timeNs = number(words[1], Long.MAX_VALUE / 4); // times are added to others
        if (timeNs < lastNs) {
            throw error("a time must not go back: timeNs=" + timeNs + " before=" + lastNs);
        }
        lastNs = timeNs;
        return timeNs;
    }

    private int seat(String[] words, int count) throws RecordingException {
        demand(words, count);
        return seat(words[1]);
    }

    private int seat(String word) throws RecordingException {
        int seat = integer(word);
        if (!present.contains(seat)) {
            throw error("a seat must have joined and not left: seat=" + seat);
        }
        return seat;
    }

    private int integer(String word) throws RecordingException {
        int value = (int) number(word, Integer.MAX_VALUE);
        if (value < 1) {
            throw error("a number of a seat, a weight and a constant must be 1 or more");
        }
        return value;
    }

    private long number(String word, long max) throws RecordingException {
        try {
            if (word.isEmpty() || !Character.isDigit(word.charAt(0))) {
                throw new NumberFormatException();
            }
            long value = Long.parseLong(word);
            if (value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw error("a number must have digits only, and at most 19");
        }
        throw error("a number must be at most " + max);
    }

    private int index(String word, List<String> words) throws RecordingException {
        int index = words.indexOf(word);
        if (index < 0) {
            throw error("the word must be one of " + String.join(", ", words));
        }
        return index;
    }

    private String name(String word) throws RecordingException {
        try {
            String name = URLDecoder.decode(word, StandardCharsets.UTF_8);
            if (!name.isEmpty()) {
                return name;
            }
        } catch (IllegalArgumentException e) {
            throw error("a name must be URL-encoded");
        }
        throw error("a name must not be empty");
    }

    private RecordingException error(String message) {
        return new RecordingException(line, message);
    }

    /** Reads a line without its line feed; null at the end. */
    private String readLine() throws IOException, RecordingException {
        line++;
        for (int length = 0;; length++) {
            int next = in.read();
            if (next < 0) {
                return null;
            } else if (next == '\n') {
                return new String(bytes, 0, length, StandardCharsets.US_ASCII);
            } else if (next < ' ' || next > '~') {
                throw error("a line must have printable ASCII characters only");
            } else if (length == bytes.length) {
                throw error("a line must have at most " + RecordingFormat.MAX_LINE_BYTES + " characters");
            }
            bytes[length] = (byte) next;
        }
    }
}
