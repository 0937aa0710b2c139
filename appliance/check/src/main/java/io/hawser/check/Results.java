package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Instant;
import java.util.List;
import java.util.Set;

/**
 * All results of a run.
 *
 * @param version of Hawser.
 * @param began start of the run.
 * @param seconds duration of the run.
 * @param machine the machine of the run.
 * @param gpu as a guest of the broker sees it.
 * @param nativeMissing why nothing ran natively; empty if programs did.
 * @param carriers that Hawser used.
 * @param programs a result for each program.
 * @param measures the rows of the table of figures.
 * @param figures the measured values.
 * @param failures the failed measurements.
 */
record Results(String version, Instant began, double seconds, Machine machine, JsonNode gpu, String nativeMissing,
    Set<Way> carriers, List<ProgramResult> programs, List<Measure> measures, Figures figures, List<String> failures) {

    /** The number of runs through Hawser with a verdict. */
    long count(ProgramResult.Verdict verdict) {
        return programs.stream().flatMap(p -> carriers.stream().map(p::verdict)).filter(v -> v == verdict).count();
    }

    /** Whether all programs agree and all measurements succeeded. */
    boolean isGood() {
        return failures.isEmpty() && programs.stream().allMatch(ProgramResult::agrees);
    }
}
