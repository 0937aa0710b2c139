package io.hawser.broker.model;

import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The labels of a vGPU: free keys and values, by which clients find the vGPUs that belong to an object of theirs. The
 * broker gives them no meaning. Any thread.
 *
 * @param map by key; unmodifiable.
 */
public record Labels(SortedMap<String, String> map) {
    /** No label. */
    public static final Labels NONE = new Labels(Collections.emptySortedMap());
    private static final int MAX_LABELS = 16; // with the next two: the width of the column in the database
    private static final Pattern KEY = Pattern.compile("[a-z0-9./-]{1,63}");
    private static final int MAX_VALUE_CHARACTERS = 128;

    /**
     * Checks labels of a client.
     *
     * @throws VgpuException of kind INVALID; the message names the rule.
     */
    public static Labels of(Map<String, String> given) throws VgpuException {
        if (given.size() > MAX_LABELS) {
            throw VgpuException.invalid("a vGPU must have at most " + MAX_LABELS + " labels: labels=" + given.size());
        }
        for (Map.Entry<String, String> label : given.entrySet()) {
            if (!KEY.matcher(label.getKey()).matches()) {
                throw VgpuException.invalid("the key of a label must match " + KEY + ": key="
                    + Texts.shown(label.getKey()));
            }
            String value = label.getValue();
            // A character that Printable replaces could forge a line of a list, or of the database's text.
            if (value == null || value.length() > MAX_VALUE_CHARACTERS
                || !Printable.text(value, MAX_VALUE_CHARACTERS).equals(value)) {
                throw VgpuException.invalid("the value of a label must have at most " + MAX_VALUE_CHARACTERS
                    + " printable characters: key=" + label.getKey() + " value=" + Texts.shown(value));
            }
        }
        return new Labels(Collections.unmodifiableSortedMap(new TreeMap<>(given)));
    }

    /** The text in the database: a line {@code KEY=VALUE} for each label. */
    public String text() {
        return map.entrySet().stream().map(label -> label.getKey() + "=" + label.getValue())
            .collect(Collectors.joining("\n"));
    }

    /**
     * The inverse of {@link #text}.
     *
     * @throws VgpuException when it is no such text.
     */
    public static Labels parse(String text) throws VgpuException {
        Map<String, String> labels = new TreeMap<>();
        for (String line : text.isEmpty() ? new String[0] : text.split("\n")) {
            labels.put(key(line), line.substring(key(line).length() + 1));
        }
        return of(labels);
    }

    /**
     * Whether the labels contain a label.
     *
     * @param label as {@code KEY=VALUE}.
     * @throws VgpuException of kind INVALID when it is no label.
     */
    public boolean contains(String label) throws VgpuException {
        return label.substring(key(label).length() + 1).equals(map.get(key(label)));
    }

    private static String key(String label) throws VgpuException {
        int end = label.indexOf('=');
        if (end < 0) {
            throw VgpuException.invalid("a label must be KEY=VALUE: label=" + Texts.shown(label));
        }
        return label.substring(0, end);
    }
}
