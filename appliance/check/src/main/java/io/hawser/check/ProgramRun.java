package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/**
 * The result of one run of a program.
 *
 * @param hung whether it was killed after the timeout.
 * @param exit its exit code; meaningless if it hung.
 * @param out its standard output.
 * @param err its standard error.
 * @param seconds from its start to its end.
 * @param carriers of its sessions, from its own counters; none for a native run.
 * @param calls number of CUDA calls that were sent to the worker.
 * @param roundTrips number of calls that waited for an answer.
 */
record ProgramRun(boolean hung, int exit, String out, String err, double seconds, List<String> carriers, long calls,
    long roundTrips) {

    /** Exit code of a program for "not supported here", which automake and JUnit's runners read as "skipped". */
    static final int UNSUPPORTED = 77;
    private static final String MEASURED = "# measured:";
    private static final String HERE = "# here:";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Reads the files of an ended program. */
    static ProgramRun of(Guests.Started program, boolean hung, double seconds) {
        try {
            List<JsonNode> counters = Files.exists(program.statistics())
                ? JSON.readerFor(JsonNode.class).<JsonNode>readValues(program.statistics().toFile()).readAll()
                : List.of();
            return new ProgramRun(hung, hung ? -1 : program.process().exitValue(), text(program.out()),
                text(program.err()), seconds,
                counters.stream().map(c -> c.path("carrier").asText()).distinct().toList(),
                counters.stream().mapToLong(c -> c.path("calls").asLong()).sum(),
                counters.stream().mapToLong(c -> c.path("round_trips").asLong()).sum());
        } catch (IOException e) {
            throw new CheckException("the output of a program cannot be read: " + program.out(), e);
        }
    }

    /** Decodes each byte as one character, so that the comparison loses nothing of the output. */
    private static String text(Path file) throws IOException {
        return Files.readString(file, StandardCharsets.ISO_8859_1);
    }

    /** Its output without the lines that differ between any two runs (see check.h of the programs). */
    String comparable() {
        return out.lines().filter(line -> !line.startsWith(MEASURED) && !line.startsWith(HERE))
            .collect(Collectors.joining("\n"));
    }

    /** The device's properties that the program reports, such as missing features; empty for none. */
    String here() {
        return out.lines().filter(line -> line.startsWith(HERE)).map(line -> line.substring(HERE.length()).strip())
            .collect(Collectors.joining(", "));
    }

    boolean isRefused() {
        return !hung && exit == UNSUPPORTED;
    }

    boolean isPassed() {
        return !hung && exit == 0;
    }

    /** The last line of standard output, else of standard error; at most 160 characters. */
    String lastLine() {
        String text = out.isBlank() ? err : out;
        String line = text.lines().filter(l -> !l.isBlank()).reduce("", (first, second) -> second).strip();
        return line.length() > 160 ? line.substring(0, 157) + "..." : line;
    }
}
