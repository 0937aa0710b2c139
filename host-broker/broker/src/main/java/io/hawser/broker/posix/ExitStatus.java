package io.hawser.broker.posix;

/**
 * How a process ended.
 *
 * @param code the exit code, or -1 when a signal ended the process.
 * @param signal the signal, or 0.
 */
public record ExitStatus(int code, int signal) {

    /** Decodes the status word of waitpid(2). */
    static ExitStatus of(int status) {
        int signal = status & 0x7f;
        return signal == 0 ? new ExitStatus(status >> 8 & 0xff, 0) : new ExitStatus(-1, signal);
    }

    @Override
    public String toString() {
        return signal == 0 ? "exit code " + code : "signal " + signal;
    }
}
