package io.hawser.check;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;

/**
 * Runs programs that print READY, wait for the end of their standard input and then do the measured work. One thread.
 */
final class HeldPrograms {
    private static final String READY = "READY";
    private static final int LOOK_EVERY_MS = 2;
    private static final Duration END_LIMIT = Duration.ofSeconds(1);

    private final Children children;
    private final Duration limit;

    /** @param limit of each wait for a program. */
    HeldPrograms(Children children, Duration limit) {
        this.children = children;
        this.limit = limit;
    }

    /**
     * Starts several programs, releases them together when all are ready, and waits for their ends.
     *
     * @param start starts the program of a number, from 0.
     * @param whenReady runs before the release.
     * @throws CheckException if a program fails; then all have ended.
     */
    List<Guests.Started> together(int count, IntFunction<Guests.Started> start, Runnable whenReady) {
        List<Guests.Started> all = new ArrayList<>();
        try {
            for (int i = 0; i < count; i++) {
                all.add(start.apply(i));
            }
            awaitReady(all);
            whenReady.run();
            release(all);
            awaitEnd(all);
            return all;
        } catch (CheckException e) {
            all.forEach(program -> children.end(program.process(), END_LIMIT));
            throw e;
        }
    }

    /** Waits until all have printed READY. */
    void awaitReady(List<Guests.Started> programs) {
        for (Guests.Started program : programs) {
            long end = System.nanoTime() + limit.toNanos();
            while (!program.outText().contains(READY)) {
                if (!program.process().isAlive()) {
                    throw failure(program, "ended with " + program.process().exitValue() + " before it was ready");
                }
                if (System.nanoTime() > end) {
                    throw failure(program, "was not ready within " + limit.toSeconds() + " s");
                }
                pause();
            }
        }
    }

    /** Ends the standard input of all. */
    void release(List<Guests.Started> programs) {
        for (Guests.Started program : programs) {
            try {
                program.process().getOutputStream().close();
            } catch (IOException e) {
                throw new CheckException("a program cannot be released", e);
            }
        }
    }

    /** Waits until all have ended with 0. */
    void awaitEnd(List<Guests.Started> programs) {
        for (Guests.Started program : programs) {
            if (!children.await(program.process(), limit)) {
                throw failure(program, "did not end within " + limit.toSeconds() + " s");
            }
            if (program.process().exitValue() != 0) {
                throw failure(program, "ended with " + program.process().exitValue());
            }
        }
    }

    /** Runs one program that need not wait. */
    void run(Guests.Started program) {
        release(List.of(program));
        awaitEnd(List.of(program));
    }

    private static CheckException failure(Guests.Started program, String how) {
        return new CheckException("a program " + how + ": " + program.out() + "\n" + program.outText()
            + program.errText());
    }

    private static void pause() {
        try {
            Thread.sleep(LOOK_EVERY_MS); // other processes cannot signal this one
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CheckException("interrupted", e);
        }
    }
}
