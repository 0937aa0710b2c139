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
 * What came of one run of a program.
 *
 * @param hung it was killed after the timeout.
 * @param exit its exit code; no meaning when it hung.
 * @param out its standard output.
 * @param err its standard error.
 * @param seconds from its start to its end.
 * @param carriers over which it had sessions, as it counted them; none for a native run.
 * @param calls of CUDA that went over the wire.
 * @param roundTrips for which it waited.
 */
record ProgramRun(boolean hung, int exit, String out, String err, double seconds, List<String> carriers, long calls,
    long roundTrips) {

    /** A program's exit code for "not supported here", which automake and JUnit's runners take for "skipped". */
    static final int UNSUPPORTED = 77;
    private static final String MEASURED = "# measured:";
    private static final String HERE = "# here:";
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Reads what an ended program has left. */
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

    /** Bytes as characters one to one: nothing of what a program prints may get lost before comparing. */
    private static String text(Path file) throws IOException {
        return Files.readString(file, StandardCharsets.ISO_8859_1);
    }

    /** What it printed, without the lines that no two runs have in common, see the programs' check.h. */
    String comparable() {
        return out.lines().filter(line -> !line.startsWith(MEASURED) && !line.startsWith(HERE))
            .collect(Collectors.joining("\n"));
    }

    /** What it says of the device as it was reached, such as features that are missing; empty for nothing. */
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

    /** The last line of its standard output, else of its standard error; at most 160 characters. */
    String lastLine() {
        String text = out.isBlank() ? err : out;
        String line = text.lines().filter(l -> !l.isBlank()).reduce("", (first, second) -> second).strip();
        return line.length() > 160 ? line.substring(0, 157) + "..." : line;
    }
}
