package io.hawser.gpu.software.work;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.generated.CUresult;
import java.util.OptionalLong;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongSupplier;

/** Work of a library in a stream, for whose number a call waits. Session thread. */
public final class AwaitedWork {
    private static final System.Logger LOG = System.getLogger(AwaitedWork.class.getName());

    private AwaitedWork() {
    }

    /**
     * Issues the work and waits for it. Wrong indices of a program end it, as a kernel would fail.
     *
     * @param library the name for the log.
     * @return nothing if the work has failed, or the stream takes none: it captures, for example.
     */
    public static OptionalLong run(GpuBackend gpu, long stream, String library, LongSupplier work) {
        if (gpu.driver().cuStreamQuery(stream) == CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
            return OptionalLong.empty(); // the wait for a number ends the capture
        }
        CountDownLatch done = new CountDownLatch(1);
        AtomicReference<OptionalLong> found = new AtomicReference<>(OptionalLong.empty());
        int issued = gpu.hostFunction(stream, () -> {
            try {
                found.set(OptionalLong.of(work.getAsLong()));
            } catch (IndexOutOfBoundsException e) {
                LOG.log(System.Logger.Level.WARNING, "{0}: an index is wrong: {1}", library, e.getMessage());
            } finally {
                done.countDown();
            }
        });
        if (issued != 0) {
            return OptionalLong.empty();
        }
        try {
            done.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return OptionalLong.empty();
        }
        return found.get();
    }
}
