package io.hawser.gpu.software.nccl;

import java.io.IOException;
import java.lang.foreign.MemorySegment;

/** Connects two ranks of this worker: the receiver copies from the sender's memory. */
final class LocalLink extends Link {
    private final Slot out;
    private final Slot in;

    private LocalLink(Slot out, Slot in) {
        this.out = out;
        this.in = in;
    }

    /** The two ends of a connection. */
    static LocalLink[] pair() {
        Slot first = new Slot();
        Slot second = new Slot();
        return new LocalLink[] {new LocalLink(first, second), new LocalLink(second, first)};
    }

    /** One direction: at most one message at a time. */
    private static final class Slot {
        private MemorySegment offered;
        private boolean isClosed;

        synchronized void send(MemorySegment data) throws IOException {
            offered = data;
            notifyAll();
            try {
                while (offered == data && !isClosed) {
                    wait();
                }
            } catch (InterruptedException e) {
                throw interrupted(e);
            }
            if (offered == data) {
                offered = null;
                throw new IOException("the other rank has ended");
            }
        }

        synchronized void receive(MemorySegment into) throws IOException {
            try {
                while (offered == null && !isClosed) {
                    wait();
                }
            } catch (InterruptedException e) {
                throw interrupted(e);
            }
            if (offered == null) {
                throw new IOException("the other rank has ended");
            }
            long sent = offered.byteSize();
            if (sent == into.byteSize()) {
                into.copyFrom(offered);
            }
            offered = null;
            notifyAll();
            if (sent != into.byteSize()) {
                throw new MismatchException(sent, into.byteSize());
            }
        }

        private static IOException interrupted(InterruptedException e) {
            Thread.currentThread().interrupt();
            return new IOException("interrupted", e);
        }

        synchronized void close() {
            isClosed = true;
            notifyAll();
        }
    }

    @Override
    void send(MemorySegment data) throws IOException {
        out.send(data);
    }

    @Override
    void receive(MemorySegment into) throws IOException {
        in.receive(into);
    }

    @Override
    void close() {
        out.close();
        in.close();
    }
}
