package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SealedMemory;
import io.hawser.worker.control.WorkerMessage;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SharedImagesTest {
    private final Arena arena = Arena.ofShared();
    private final MemorySegment content = arena.allocate(100_000);
    private final BlockingQueue<WorkerMessage> told = new LinkedBlockingQueue<>();
    private final List<Boolean> done = new ArrayList<>();
    private final BlobStore blobs = new BlobStore();

    @AfterEach
    void close() {
        blobs.close();
        arena.close();
    }

    private String digest() {
        content.fill((byte) 7);
        return HexFormat.of().formatHex(BlobStore.sha256(content));
    }

    private SharedImages images(String... known) {
        return new SharedImages(List.of(known), told::add, Runnable::run);
    }

    private int memory(MemorySegment bytes) throws IOException {
        int descriptor = SealedMemory.create("test", bytes.byteSize());
        SealedMemory.write(descriptor, bytes);
        SealedMemory.seal(descriptor);
        return descriptor;
    }

    private void stage(String digest) {
        assertEquals(BlobStore.Outcome.OK, blobs.stage(1, content.byteSize(), HexFormat.of().parseHex(digest)));
    }

    @Test
    void shouldUseBrokersImageInsteadOfGuestsBytes() throws IOException {
        String digest = digest();
        SharedImages images = images(digest);
        stage(digest);
        assertTrue(images.has(digest));
        images.fetch(digest, blobs.beginFetch(1), isThere -> {
            blobs.endFetch(1, isThere);
            done.add(isThere);
        });
        assertEquals(List.of(new WorkerMessage.Want(digest)), List.copyOf(told));
        assertFalse(images.has(digest), "it is being fetched");
        assertEquals(BlobStore.Outcome.MALFORMED, blobs.append(1, 0, content), "the guest sends nothing meanwhile");
        images.arrived(digest, content.byteSize(), memory(content));
        assertEquals(List.of(true), done);
        String key = blobs.consume(1);
        assertEquals(-1, blobs.bytes(key).mismatch(content));
        blobs.release(key);
    }

    @Test
    void shouldRefuseContentOfAnotherDigestAndLetTheGuestSendIt() throws IOException {
        String digest = digest();
        SharedImages images = images(digest);
        stage(digest);
        images.fetch(digest, blobs.beginFetch(1), isThere -> {
            blobs.endFetch(1, isThere);
            done.add(isThere);
        });
        MemorySegment other = arena.allocate(content.byteSize()).copyFrom(content);
        other.set(ValueLayout.JAVA_BYTE, 99_999, (byte) 8);
        images.arrived(digest, other.byteSize(), memory(other));
        assertEquals(List.of(false), done);
        assertTrue(told.contains(new WorkerMessage.Unfit(digest)));
        assertFalse(images.has(digest), "only once");
        assertNull(blobs.consume(1), "it is not complete");
        assertEquals(BlobStore.Outcome.OK, blobs.append(1, 0, content));
        assertEquals(digest, blobs.consume(1));
    }

    @Test
    void shouldRefuseContentOfAnotherLength() throws IOException {
        String digest = digest();
        SharedImages images = images(digest);
        stage(digest);
        images.fetch(digest, blobs.beginFetch(1), done::add);
        images.arrived(digest, content.byteSize() - 1, memory(content));
        assertEquals(List.of(false), done);
        blobs.endFetch(1, false);
    }

    @Test
    void shouldAskGuestWhenBrokerHasDroppedImage() throws IOException {
        String digest = digest();
        SharedImages images = images(digest);
        stage(digest);
        images.fetch(digest, blobs.beginFetch(1), done::add);
        images.missing(digest);
        assertEquals(List.of(false), done);
        assertThrows(IOException.class, () -> images.missing(digest), "nobody asked");
        blobs.endFetch(1, false);
    }

    @Test
    void shouldSendGuestsImageToBroker() throws IOException, InterruptedException {
        String digest = digest();
        SharedImages images = images();
        assertFalse(images.has(digest));
        stage(digest);
        assertEquals(BlobStore.Outcome.OK, blobs.append(1, 0, content));
        images.offer(digest, content.byteSize());
        images.offer(digest, content.byteSize());
        assertEquals(new WorkerMessage.Image(digest, content.byteSize()), told.poll());
        assertNull(told.poll(), "only once");
        int kept = SealedMemory.create("test", content.byteSize());
        // The worker closes the descriptor that it gets, so it gets a second one, as SCM_RIGHTS would create.
        int given = Descriptors.open(Path.of("/proc/self/fd/" + kept));
        images.store(digest, given, blobs);
        assertEquals(new WorkerMessage.Stored(digest), told.poll(60, TimeUnit.SECONDS));
        SealedMemory.seal(kept);
        MemorySegment read = arena.allocate(content.byteSize());
        SealedMemory.read(kept, read);
        assertEquals(-1, read.mismatch(content));
        assertThrows(IOException.class, () -> SealedMemory.write(kept, content), "sealed");
        Descriptors.close(kept);
    }

    @Test
    void shouldSendNoImageThatWasNotOffered() throws IOException {
        images().store(digest(), SealedMemory.create("test", content.byteSize()), blobs);
        assertEquals(new WorkerMessage.Stored(""), told.poll());
    }

    @Test
    void shouldLimitMessagesToBroker() {
        SharedImages images = images();
        for (int i = 0; i < 1000; i++) {
            images.offer(Integer.toString(i), 100_000);
        }
        assertTrue(told.size() <= 60, () -> "messages=" + told.size());
    }
}
