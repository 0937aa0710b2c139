package io.hawser.cuda.backend;

import java.util.List;

/**
 * Chooses the addresses of variables of device code, for a session that comes from another process. A context must be
 * current. Session thread.
 */
public interface VariablePlaces {
    /** For a backend that chooses none. */
    VariablePlaces NONE = new VariablePlaces() {
        @Override
        public void expect(List<ManagedVariables.Variable> variables) {
            // The caller compares the addresses later.
        }

        @Override
        public void end() {
            // Nothing was taken.
        }
    };

    /**
     * Tells the backend where the variables of the next image lay. It places them there if it can; the caller checks
     * it. Call it before each image is loaded.
     *
     * @param variables all but managed ones; empty for unknown ones.
     */
    void expect(List<ManagedVariables.Variable> variables);

    /** Gives back what the backend has taken for this. Call it after the last image. */
    void end();
}
