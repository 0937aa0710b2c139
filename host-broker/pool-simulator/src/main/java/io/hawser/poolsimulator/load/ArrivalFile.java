package io.hawser.poolsimulator.load;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;

/** A file of arrivals: CSV with the line {@link #HEAD} first, and an arrival a line, the earliest first. */
public final class ArrivalFile {
    /** The first line. */
    public static final String HEAD = "at_ms,life_ms,memory_mib,share,used";

    private static final int MAX_SHARE = 100;
    private static final long MAX_MS = 1_000_000_000_000L; // 30 years: sums of times must not overflow

    private ArrivalFile() {
    }

    /** Prints an arrival as a line without its end. */
    public static String line(Arrival arrival) {
        return arrival.atMs() + "," + arrival.lifeMs() + "," + arrival.memoryMib() + "," + arrival.share() + ","
            + (arrival.isUsed() ? 1 : 0);
    }

    /**
     * Reads a file.
     *
     * @throws IOException when it cannot be read, or a line has another form; the message names the line.
     */
    public static Arrivals read(Path file) throws IOException {
        List<Arrival> all = new ArrayList<>();
        try (BufferedReader reader = Files.newBufferedReader(file)) {
            if (!HEAD.equals(reader.readLine())) {
                throw new IOException(file + ": line 1 must be " + HEAD);
            }
            long lastMs = 0;
            for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                Arrival arrival = parse(line, file + ": line " + (all.size() + 2));
                if (arrival.atMs() < lastMs) {
                    throw new IOException(file + ": line " + (all.size() + 2) + " must not be before the last one: "
                        + line);
                }
                lastMs = arrival.atMs();
                all.add(arrival);
            }
        }
        Iterator<Arrival> arrivals = all.iterator();
        return () -> arrivals.hasNext() ? Optional.of(arrivals.next()) : Optional.empty();
    }

    private static Arrival parse(String line, String where) throws IOException {
        String[] fields = line.split(",", -1);
        if (fields.length != HEAD.split(",", -1).length) {
            throw new IOException(where + " must have the fields " + HEAD + ": " + line);
        }
        return new Arrival(number(fields[0], 0, MAX_MS, where), number(fields[1], 1, MAX_MS, where),
            (int) number(fields[2], 0, Integer.MAX_VALUE, where), (int) number(fields[3], 1, MAX_SHARE, where),
            number(fields[4], 0, 1, where) == 1);
    }

    private static long number(String text, long least, long most, String where) throws IOException {
        try {
            long value = Long.parseLong(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw new IOException(where + " must have whole numbers: " + text, e);
        }
        throw new IOException(where + " must have a number of " + least + ".." + most + ": " + text);
    }
}
