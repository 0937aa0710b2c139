package io.hawser.client;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads settings files: lines of {@code name = "value"}, a subset of TOML. */
public final class ConfigFile {
    private static final Pattern LINE = Pattern.compile(
        "([A-Za-z0-9_.-]+)\\s*=\\s*(?:\"((?:[^\"\\\\]|\\\\[\"\\\\])*)\"|'([^']*)')\\s*(?:#.*)?");

    private ConfigFile() {
    }

    /**
     * Reads a file.
     *
     * @param mustExist whether a missing file is an error.
     * @param names the valid settings; {@code _} in the file stands for {@code -}.
     * @throws ClientException with the file and line, if it cannot be read or a line is invalid.
     */
    public static Map<String, String> read(Path file, boolean mustExist, Set<String> names) {
        if (!mustExist && !Files.exists(file)) {
            return Map.of();
        }
        List<String> lines;
        try {
            lines = Files.readAllLines(file);
        } catch (IOException e) {
            throw new ClientException(Failure.INVALID, "the file cannot be read: " + file + ": " + Problems.of(e));
        }
        Map<String, String> settings = new LinkedHashMap<>();
        for (int i = 0; i < lines.size(); i++) {
            String line = lines.get(i).strip();
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            Matcher matcher = LINE.matcher(line);
            if (!matcher.matches()) {
                throw new ClientException(Failure.INVALID, file + ", line " + (i + 1) + ": a line is name = \"value\"");
            }
            String name = matcher.group(1).replace('_', '-');
            if (!names.contains(name)) {
                throw new ClientException(Failure.INVALID, file + ", line " + (i + 1) + ": there is no setting "
                    + name);
            }
            settings.put(name, matcher.group(3) != null ? matcher.group(3)
                : matcher.group(2).replaceAll("\\\\(.)", "$1"));
        }
        return settings;
    }
}
