package io.hawser.check;

import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * The runs of one program, and their comparison.
 *
 * @param name of the program.
 * @param runs by way; without NATIVE if it could not run natively.
 * @param nativeMissing why there is no native run; empty if there is one.
 */
record ProgramResult(String name, Map<Way, ProgramRun> runs, String nativeMissing) {
    /** The result of the comparison for one run. */
    enum Verdict {
        /** Exit code and output equal the native run's. Without a native run: it passed and the carriers agree. */
        RIGHT("right"),
        /** Right, but the program found other features than natively, and checked only those. */
        IN_PART("in part"),
        /** Hawser rejected a function that the program tests, and reported it. */
        REFUSED("refused"),
        /** The exit code or output differs, or the program failed. */
        WRONG("WRONG"),
        /** It did not end within the timeout. */
        HUNG("HUNG"),
        /** The device lacks the feature, natively as well. */
        NOT_HERE("not on this device");

        private final String label;

        Verdict(String label) {
            this.label = label;
        }

        String label() {
            return label;
        }

        boolean isFailure() {
            return this == WRONG || this == HUNG;
        }
    }

    /** The verdict on a run. For a native run only its exit code counts. */
    Verdict verdict(Way way) {
        ProgramRun run = runs.get(way);
        ProgramRun reference = runs.get(Way.NATIVE);
        if (run.hung()) {
            return Verdict.HUNG;
        }
        if (way == Way.NATIVE) {
            return run.isPassed() ? Verdict.RIGHT : run.isRefused() ? Verdict.NOT_HERE : Verdict.WRONG;
        }
        if (!run.carriers().isEmpty() && !run.carriers().equals(List.of(way.label()))) {
            return Verdict.WRONG;
        }
        if (run.isRefused()) {
            return reference != null && reference.isRefused() ? Verdict.NOT_HERE : Verdict.REFUSED;
        }
        if (reference != null) {
            if (run.exit() != reference.exit() || !run.comparable().equals(reference.comparable())) {
                return Verdict.WRONG;
            }
            return run.here().equals(reference.here()) ? Verdict.RIGHT : Verdict.IN_PART;
        }
        if (!run.isPassed() || !agreesWithOtherCarriers(run)) {
            return Verdict.WRONG;
        }
        return run.here().isEmpty() ? Verdict.RIGHT : Verdict.IN_PART;
    }

    private boolean agreesWithOtherCarriers(ProgramRun run) {
        return runs.values().stream().filter(ProgramRun::isPassed).allMatch(
            other -> other.comparable().equals(run.comparable()));
    }

    /** The verdicts by way. */
    Map<Way, Verdict> verdicts() {
        Map<Way, Verdict> verdicts = new EnumMap<>(Way.class);
        runs.keySet().forEach(way -> verdicts.put(way, verdict(way)));
        return verdicts;
    }

    /** Whether no run differs or fails. */
    boolean agrees() {
        return verdicts().values().stream().noneMatch(Verdict::isFailure);
    }

    /** One line about all runs that are not right; empty if there are none. */
    String remark() {
        StringBuilder remark = new StringBuilder(nativeMissing);
        verdicts().forEach((way, verdict) -> {
            if (verdict != Verdict.RIGHT) {
                ProgramRun run = runs.get(way);
                remark.append(remark.isEmpty() ? "" : "; ").append(way.label()).append(": ")
                    .append(run.hung() ? "killed after " + Math.round(run.seconds()) + " s" : what(verdict, run));
            }
        });
        return remark.toString();
    }

    private String what(Verdict verdict, ProgramRun run) {
        if (verdict == Verdict.IN_PART) {
            return run.here();
        }
        if (verdict != Verdict.WRONG) {
            return run.lastLine();
        }
        ProgramRun reference = runs.get(Way.NATIVE);
        if (run.isPassed() && (reference == null || reference.isPassed())) {
            return "output differs: " + run.lastLine();
        }
        boolean besideNative = reference != null && reference != run;
        return "exit " + run.exit() + (besideNative ? " (native " + reference.exit() + ")" : "") + ": "
            + run.lastLine();
    }
}
