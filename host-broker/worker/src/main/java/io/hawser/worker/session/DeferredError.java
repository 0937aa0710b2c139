package io.hawser.worker.session;

/** The first error of calls without a reply. A later synchronising call returns it, once. Session thread. */
final class DeferredError {
    private int kept; // CUresult; 0 for none

    /** Keeps a CUresult if it is an error and none is kept; returns whether it does. */
    boolean keep(int result) {
        boolean isKept = result != 0 && kept == 0;
        kept = isKept ? result : kept;
        return isKept;
    }

    /** The kept error; 0 for none. */
    int kept() {
        return kept;
    }

    boolean isKept() {
        return kept != 0;
    }

    /** The result of a synchronising call: its own error, or else the kept one. */
    int take(int result) {
        if (result != 0) {
            kept = kept == result ? 0 : kept;
            return result;
        }
        int delivered = kept;
        kept = 0;
        return delivered;
    }
}
