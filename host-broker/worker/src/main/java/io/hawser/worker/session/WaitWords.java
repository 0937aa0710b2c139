package io.hawser.worker.session;

import io.hawser.cuda.backend.Signals;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;

/**
 * Words of memory by which the session lets streams wait. A host function that waits would do the same, but NVIDIA's
 * driver calls the host functions of all streams one after the other: a guest's function that waits would keep back
 * every other (580.159, H200). Session thread only.
 */
final class WaitWords {
    private static final int PAGE_BYTES = 4096;
    private static final VarHandle VALUE = ValueLayout.JAVA_INT.varHandle();

    private final Signals signals;
    private final ArrayDeque<Word> idle = new ArrayDeque<>();

    /**
     * Registers the first page at once, if there are signals: registering memory may wait for the device, so later it
     * could wait for work that waits for the guest. One page is enough for all waits that {@link Gates} lets a session
     * have.
     */
    WaitWords(Signals signals) {
        this.signals = signals;
        if (signals != null) {
            addPage();
        }
    }

    /** One word: streams wait until it has the number. */
    final class Word {
        private final MemorySegment memory;
        private int number; // of the last wait
        private int opened; // of the last wait that may end

        private Word(MemorySegment memory) {
            this.memory = memory;
        }

        /**
         * Makes the later work of a stream wait for {@link #open}, or for its turn of {@link #openNext}.
         *
         * @param stream native stream of the current context.
         * @return CUresult.
         */
        int await(long stream) {
            number++;
            return signals.await(stream, memory, number);
        }

        /** Ends all waits. */
        void open() {
            opened = number;
            VALUE.setRelease(memory, 0L, opened);
        }

        /** Ends the oldest wait that has not been ended. */
        void openNext() {
            VALUE.setRelease(memory, 0L, ++opened);
        }

        /** Takes back the word: no stream waits for it any more. */
        void give() {
            idle.push(this);
        }
    }

    /** A word for one wait; null when the driver does not take further memory. */
    Word take() {
        return idle.isEmpty() && (signals == null || !addPage()) ? null : idle.pop();
    }

    /** Adds the words of a page; returns false when the driver does not take further memory. */
    private boolean addPage() {
        MemorySegment page = Arena.global().allocate(PAGE_BYTES, PAGE_BYTES); // one page serves 1024 waits
        if (signals.open(page) != 0) {
            return false;
        }
        for (long at = 0; at < PAGE_BYTES; at += Integer.BYTES) {
            idle.push(new Word(page.asSlice(at, Integer.BYTES)));
        }
        return true;
    }
}
