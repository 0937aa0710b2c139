package io.hawser.check;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * One line of random_calls.
 *
 * @param index of the call in the run.
 * @param function its name, or a step of the run such as "begin of capture".
 * @param arguments as text.
 * @param result the code, {@code crash N}, {@code hang N}, {@code absent} or the reason why it was not made.
 * @param outputs as text.
 * @param last the runtime's last error; empty after a driver function.
 * @param sync result of the next synchronisation, {@code capturing}, or empty without a context.
 * @param contents checksum of each block, by name; empty on most lines.
 */
record TracedCall(int index, String function, String arguments, String result, String outputs, String last,
    String sync, Map<String, String> contents) {

    private static final Pattern LINE = Pattern.compile("(\\d+) ([^(=]+?)(?:\\((.*?)\\))?(?: =|(?= not made)) (.*)");
    private static final Pattern REST = Pattern.compile("((?:crash|hang) \\d+|not made.*|\\S+)(.*?)"
        + "(?: last=(\\d+))?(?: (sync=\\d+|capturing))?(?: contents(.*))?");
    private static final Pattern BLOCK = Pattern.compile(" ([dphmvw]\\d+):(error \\d+|[0-9a-f]{8})");
    private static final Pattern BLOCK_NAME = Pattern.compile("[dphmvwr]\\d+");
    private static final Pattern OBJECT = Pattern.compile("(?<![A-Za-z0-9_.])~?(?:[dphmvwr]|context|module|library"
        + "|function|kernel|stream|event|pool|link|array|mipmapped|graph|node|exec|object|texture|surface|physical"
        + "|green|resources)\\d+(?![A-Za-z0-9_])");

    /** Reads a line; null for a line that is no call's. */
    static TracedCall parse(String text) {
        Matcher line = LINE.matcher(text);
        if (!line.matches()) {
            return null;
        }
        Matcher rest = REST.matcher(line.group(4));
        if (!rest.matches()) {
            return null;
        }
        Map<String, String> contents = new TreeMap<>();
        Matcher block = BLOCK.matcher(orEmpty(rest.group(5)));
        while (block.find()) {
            contents.put(block.group(1), block.group(2));
        }
        return new TracedCall(Integer.parseInt(line.group(1)), line.group(2), orEmpty(line.group(3)), rest.group(1),
            rest.group(2).strip(), orEmpty(rest.group(3)), orEmpty(rest.group(4)), contents);
    }

    private static String orEmpty(String text) {
        return text == null ? "" : text;
    }

    boolean endsProcess() {
        return result.startsWith("crash") || result.startsWith("hang");
    }

    boolean isSuccess() {
        return result.equals("0");
    }

    /** Whether the call only reads objects. */
    boolean isQuery() {
        return function.contains("Get") || function.contains("Query") || function.contains("Is");
    }

    Set<String> usedObjects() {
        return objects(arguments);
    }

    /** The memory that it uses. */
    Set<String> usedBlocks() {
        return usedObjects().stream().filter(name -> BLOCK_NAME.matcher(name).matches()).collect(Collectors.toSet());
    }

    Set<String> writtenObjects() {
        return objects(outputs.replace('=', ' ').replace(':', ' '));
    }

    private static Set<String> objects(String text) {
        Set<String> objects = new TreeSet<>();
        Matcher object = OBJECT.matcher(text);
        while (object.find()) {
            objects.add(object.group().replace("~", ""));
        }
        return objects;
    }

    String call() {
        return function + "(" + arguments + ")";
    }
}
