package io.hawser.worker.session;

import io.hawser.worker.channel.Outbox;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Sends the text that kernels print to the guest's standard output. Nothing waits for the guest to read: as in CUDA,
 * whose buffer has 1 MiB, excess text is lost. Unlike CUDA, the worker reports the loss in the output.
 */
final class DeviceOutput {
    private static final long MAX_WAITING_BYTES = 1L << 20;

    private final Completions completions;
    private final Outbox outbox;
    private final AtomicLong queuedBytes = new AtomicLong();
    private final AtomicLong lostBytes = new AtomicLong();

    DeviceOutput(Completions completions, Outbox outbox) {
        this.completions = completions;
        this.outbox = outbox;
    }

    /** Takes text. Any thread. */
    void accept(byte[] text) {
        long waiting = queuedBytes.addAndGet(text.length);
        if (waiting > MAX_WAITING_BYTES && waiting > text.length) {
            queuedBytes.addAndGet(-text.length);
            lostBytes.addAndGet(text.length);
            return;
        }
        completions.add(() -> send(text));
    }

    private void send(byte[] text) {
        queuedBytes.addAndGet(-text.length);
        if (outbox.unreadBytes() > MAX_WAITING_BYTES) {
            lostBytes.addAndGet(text.length);
            return;
        }
        long lost = lostBytes.getAndSet(0);
        if (lost > 0) {
            outbox.output(("[hawser: " + lost + " bytes of device output lost: the buffer was full]\n")
                .getBytes(StandardCharsets.UTF_8));
        }
        outbox.output(text);
    }
}
