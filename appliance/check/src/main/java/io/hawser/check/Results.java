package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;
import java.util.Set;

/**
 * Everything that a run has found out.
 *
 * @param version of Hawser.
 * @param began when it began.
 * @param seconds how long it took.
 * @param machine where.
 * @param gpu as a guest of the broker sees it.
 * @param nativeMissing why nothing ran natively; empty when it did.
 * @param carriers over which Hawser was used.
 * @param programs a result for each program.
 * @param measures the rows of the table of figures.
 * @param figures what was measured.
 * @param failures what could not be measured.
 */
record Results(String version, Instant began, double seconds, Machine machine, JsonNode gpu, String nativeMissing,
    Set<Way> carriers, List<ProgramResult> programs, List<Measure> measures, Figures figures, List<String> failures) {

    /** How many runs of programs through Hawser have a verdict. */
    long count(ProgramResult.Verdict verdict) {
        return programs.stream().flatMap(p -> carriers.stream().map(p::verdict)).filter(v -> v == verdict).count();
    }

    /** Whether all programs agree and everything could be measured. */
    boolean isGood() {
        return failures.isEmpty() && programs.stream().allMatch(ProgramResult::agrees);
    }
}
