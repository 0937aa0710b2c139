package io.hawser.turns;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Writes a recording's text, line by line. Looks, states and permits allocate nothing. One thread.
 *
 * @see RecordingReader
 */
public final class RecordingEncoder implements TurnRecorder {
    private static final int LONG_DIGITS = 20;
    private static final byte[][] STATES = words(RecordingFormat.STATES);
    private static final byte[][] PERMITS = words(RecordingFormat.PERMITS);
    private static final byte[] LOOK = bytes("look");
    private static final byte[] STATE = bytes("state");
    private static final byte[] PERMIT = bytes("permit");

    /** Takes lines. */
    @FunctionalInterface
    public interface Sink {
        /** Takes one line with its line feed: the first bytes of an array that the caller uses again. */
        void accept(byte[] line, int lengthBytes);
    }

    private final Sink sink;
    private final long startNs;
    private final byte[] digits = new byte[LONG_DIGITS];
    private byte[] line = new byte[256];
    private int length;

    /**
     * Writes the first two lines.
     *
     * @param startNs the time that the recording counts from; no event is earlier.
     */
    public RecordingEncoder(Sink sink, TurnRules rules, long startNs) {
        this.sink = sink;
        this.startNs = startNs;
        word(bytes(RecordingFormat.HEADER));
        end();
        word(bytes("rules"));
        number(rules.quantumNs());
        number(rules.graceNs());
        number(rules.lingerNs());
        number(rules.turnParts());
        number(rules.firstLingers());
        number(rules.lateReturns());
        end();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[][] words(List<String> words) {
        return words.stream().map(RecordingEncoder::bytes).toArray(byte[][]::new);
    }

    private static String encode(String name) {
        return URLEncoder.encode(name, StandardCharsets.UTF_8);
    }

    @Override
    public void joined(long nowNs, int seat, String vgpu, int weight, List<String> gpus) {
        word(bytes("join"));
        number(nowNs - startNs);
        number(seat);
        word(bytes(encode(vgpu)));
        number(weight);
        if (!gpus.isEmpty()) {
            word(bytes(gpus.stream().map(RecordingEncoder::encode).collect(Collectors.joining(","))));
        }
        end();
    }

    @Override
    public void left(long nowNs, int seat) {
        word(bytes("leave"));
        number(nowNs - startNs);
        number(seat);
        end();
    }

    @Override
    public void weighed(long nowNs, String vgpu, int weight) {
        word(bytes("weight"));
        number(nowNs - startNs);
        word(bytes(encode(vgpu)));
        number(weight);
        end();
    }

    @Override
    public void looked(long nowNs, int seat) {
        word(LOOK);
        number(nowNs - startNs);
        number(seat);
        end();
    }

    @Override
    public void read(int seat, int state) {
        word(STATE);
        number(seat);
        word(STATES[state]);
        end();
    }

    @Override
    public void permitted(int seat, int permit) {
        word(PERMIT);
        number(seat);
        word(PERMITS[permit]);
        end();
    }

    @Override
    public void leftEqual(boolean isLeft) {
        word(bytes("equal"));
        number(isLeft ? 1 : 0);
        end();
    }

    @Override
    public void abandoned(long nowNs) {
        word(bytes("abandon"));
        number(nowNs - startNs);
        end();
    }

    private void word(byte[] word) {
        word(word, 0, word.length);
    }

    private void word(byte[] from, int offset, int lengthBytes) {
        if (length + lengthBytes + 2 > line.length) {
            line = Arrays.copyOf(line, 2 * (length + lengthBytes + 2));
        }
        if (length > 0) {
            line[length++] = ' ';
        }
        System.arraycopy(from, offset, line, length, lengthBytes);
        length += lengthBytes;
    }

    /** Adds a number of 0 or more. */
    private void number(long value) {
        int at = digits.length;
        long rest = value;
        do {
            digits[--at] = (byte) ('0' + rest % 10);
            rest /= 10;
        } while (rest > 0);
        word(digits, at, digits.length - at);
    }

    private void end() {
        line[length++] = '\n';
        sink.accept(line, length);
        length = 0;
    }
}
