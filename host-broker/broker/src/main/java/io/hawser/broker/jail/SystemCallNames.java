package io.hawser.broker.jail;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Names of system calls, for the log. */
final class SystemCallNames {
    private static final String TABLE = "syscalls-x86_64.txt";

    private final Map<Integer, String> names = new HashMap<>();

    /** Reads the table. */
    SystemCallNames() {
        try (InputStream table = SystemCallNames.class.getResourceAsStream(TABLE);
            BufferedReader lines = new BufferedReader(new InputStreamReader(table, StandardCharsets.US_ASCII))) {
            lines.lines().map(line -> line.split(" ")).forEach(f -> names.put(Integer.valueOf(f[0]), f[1]));
        } catch (IOException e) {
            throw new UncheckedIOException("the table of system calls must be readable: " + TABLE, e);
        }
    }

    /** The name of a system call; "call NUMBER" when the table does not contain it. */
    String of(int number) {
        return names.getOrDefault(number, "call " + number);
    }
}
