package io.hawser.broker.turns;

import io.hawser.broker.machine.PrivateFile;
import io.hawser.turns.RecordingEncoder;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.jboss.logging.Logger;

/**
 * The file of a recording. The scheduler's thread copies lines into a buffer, and a thread of this object writes them.
 * The recording ends at its size limit, and when the buffer is full, because a replay needs every line.
 */
final class RecordingFile implements RecordingEncoder.Sink, AutoCloseable {
    private static final Logger LOG = Logger.getLogger(RecordingFile.class);
    private static final int BUFFER_BYTES = 1 << 20;
    private static final long WRITE_EVERY_MS = 1000;
    private static final long CLOSE_LIMIT_MS = 5000;

    private final Path path;
    private final long maxBytes;
    private final FileChannel file;
    private final Thread thread;
    private final Object lock = new Object();
    private byte[] filling = new byte[BUFFER_BYTES]; // under the lock, as the next
    private int filledBytes;
    private long acceptedBytes;
    private String end; // why the recording has ended; null: it goes on
    private boolean isClosed;
    private byte[] writing = new byte[BUFFER_BYTES]; // the writing thread's

    private RecordingFile(Path path, long maxBytes, FileChannel file) {
        this.path = path;
        this.maxBytes = maxBytes;
        this.file = file;
        thread = new Thread(this::run, "hawser-recording");
        thread.setDaemon(true);
    }

    /**
     * Makes the file, with mode 0600 and instead of an earlier one, and starts the thread.
     *
     * @param maxBytes limit of the file's size.
     */
    static RecordingFile open(Path path, long maxBytes) throws IOException {
        RecordingFile recording = new RecordingFile(path, maxBytes, PrivateFile.create(path));
        recording.thread.start();
        return recording;
    }

    /** Takes a line, unless the recording has ended. Never waits for the file. */
    @Override
    public void accept(byte[] line, int lengthBytes) {
        synchronized (lock) {
            if (end != null || isClosed) {
                return;
            }
            if (acceptedBytes + lengthBytes > maxBytes) {
                end = "it has reached hawser.turns.record-max-size=" + maxBytes;
            } else if (filledBytes + lengthBytes > BUFFER_BYTES) {
                end = "the file takes data more slowly than the scheduler decides";
            } else {
                System.arraycopy(line, 0, filling, filledBytes, lengthBytes);
                filledBytes += lengthBytes;
                acceptedBytes += lengthBytes;
            }
            if (end != null || filledBytes > BUFFER_BYTES / 2) {
                lock.notifyAll();
            }
        }
    }

    private void run() {
        try (file) {
            boolean goesOn = true;
            while (goesOn) {
                int length;
                synchronized (lock) {
                    if (end == null && !isClosed && filledBytes <= BUFFER_BYTES / 2) {
                        lock.wait(WRITE_EVERY_MS);
                    }
                    byte[] filled = filling;
                    filling = writing;
                    writing = filled;
                    length = filledBytes;
                    filledBytes = 0;
                    goesOn = end == null && !isClosed;
                }
                ByteBuffer bytes = ByteBuffer.wrap(writing, 0, length);
                while (bytes.hasRemaining()) {
                    file.write(bytes);
                }
            }
        } catch (IOException e) {
            end("writing has failed: " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        String why = end(null);
        if (why != null) {
            LOG.warnf("the recording of turns has ended: %s (hawser.turns.record=%s)", why, path);
        }
    }

    private String end(String why) {
        synchronized (lock) {
            end = end == null ? why : end;
            return end;
        }
    }

    /** Writes the remaining lines, waiting for at most 5 seconds, and closes the file. */
    @Override
    public void close() {
        synchronized (lock) {
            isClosed = true;
            lock.notifyAll();
        }
        try {
            thread.join(CLOSE_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
