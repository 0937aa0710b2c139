package io.hawser.broker.image;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.broker.pool.ImagePeer;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.os.SealedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ImageStoreTest {
    private static final String VGPU = "tenant";
    private static final long BYTES = 1000;

    private final ImageStore store = new ImageStore(new ImageStore.Limits(4, 10 * BYTES),
        new ImageStore.Limits(9, 20 * BYTES));
    private final Peer worker = new Peer(1);

    /** A worker that writes an image at once and reports the image as stored when the test calls hasStored. */
    private final class Peer implements ImagePeer {
        private final long id;
        private final String vgpu;
        private final List<String> told = new ArrayList<>();
        private int given = -1;

        Peer(long id) {
            this(id, VGPU);
        }

        Peer(long id, String vgpu) {
            this.id = id;
            this.vgpu = vgpu;
        }

        @Override
        public long id() {
            return id;
        }

        @Override
        public void giveImage(BrokerMessageType type, String sha256, long bytes, int descriptor) {
            told.add(type.wireName() + " " + sha256);
            given = descriptor;
            if (type == BrokerMessageType.STORE) {
                try (Arena arena = Arena.ofConfined()) {
                    SealedMemory.write(descriptor, arena.allocate(bytes));
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            }
        }

        @Override
        public void sendImageDropped(String sha256) {
            told.add("none " + sha256);
        }

        void offers(String sha256, long bytes) {
            store.handle(this, vgpu, new WorkerMessage.Image(sha256, bytes));
        }

        void hasStored(String sha256) {
            store.handle(this, vgpu, new WorkerMessage.Stored(sha256));
        }
    }

    private int keep(String vgpu, String sha256, long bytes) {
        Peer peer = new Peer(100, vgpu);
        peer.offers(sha256, bytes);
        peer.hasStored(sha256);
        return peer.given;
    }

    private static boolean isImage(int descriptor) throws IOException {
        try {
            return Files.readSymbolicLink(Path.of("/proc/self/fd/" + descriptor)).toString().contains("hawser-image");
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void shouldKeepAnImageThatWasOfferedWhileAnotherWasWritten() {
        worker.offers("a", BYTES);
        worker.offers("b", BYTES);
        worker.offers("c", BYTES);
        assertEquals(List.of("store a"), worker.told, "the store must ask for one image at a time");
        worker.hasStored("a");
        worker.hasStored("b");
        worker.hasStored("c");
        assertEquals(List.of("store a", "store b", "store c"), worker.told);
        assertEquals(List.of("a", "b", "c"), store.digests(VGPU));
        assertEquals(3 * BYTES, store.bytes());
    }

    @Test
    void shouldPassOverAWaitingOfferThatIsNotWanted() {
        worker.offers("a", BYTES);
        worker.offers("a", BYTES);
        worker.offers("large", 11 * BYTES);
        worker.offers("b", BYTES);
        worker.hasStored("a");
        assertEquals(List.of("store a", "store b"), worker.told);
    }

    @Test
    void shouldGoOnAfterAnImageThatTheWorkerHasDropped() {
        worker.offers("a", BYTES);
        worker.offers("b", BYTES);
        worker.hasStored("");
        worker.hasStored("b");
        assertEquals(List.of("b"), store.digests(VGPU));
    }

    @Test
    void shouldBoundWhatWaits() {
        for (int i = 0; i < 1000; i++) {
            worker.offers("image " + i, BYTES);
        }
        for (int i = 0; i < 1000; i++) {
            worker.hasStored("image " + i);
        }
        assertEquals(65, worker.told.size(), "one image being written and 64 waiting offers");
        assertEquals(4, store.size());
    }

    @Test
    void shouldForgetWhatAWorkerThatIsGoneHasOffered() {
        worker.offers("a", BYTES);
        worker.offers("b", BYTES);
        store.workerEnded(worker);
        worker.hasStored("a");
        assertEquals(List.of("store a"), worker.told);
        assertEquals(0, store.size());
        Peer next = new Peer(2);
        next.offers("b", BYTES);
        next.hasStored("b");
        assertEquals(List.of("b"), store.digests(VGPU));
    }

    @Test
    void shouldGiveWhatItKeepsAndSayWhatItDoesNot() {
        worker.offers("a", BYTES);
        worker.hasStored("a");
        Peer next = new Peer(2);
        store.handle(next, VGPU, new WorkerMessage.Want("a"));
        store.handle(next, VGPU, new WorkerMessage.Want("b"));
        store.handle(next, "another tenant", new WorkerMessage.Want("a"));
        assertEquals(List.of("image a", "none b", "none a"), next.told);
    }

    /** A worker with a writable mapping could change an image that a later session uses. */
    @Test
    void shouldKeepNoMemoryThatAWorkerCanStillWrite() throws IOException {
        worker.offers("a", BYTES);
        try (FileChannel file = FileChannel.open(Path.of("/proc/self/fd/" + worker.given), StandardOpenOption.READ,
            StandardOpenOption.WRITE); Arena mapped = Arena.ofConfined()) {
            MemorySegment memory = file.map(FileChannel.MapMode.READ_WRITE, 0, BYTES, mapped);
            worker.hasStored("a");
            assertEquals(0, store.size());
            memory.set(ValueLayout.JAVA_BYTE, 0, (byte) 1);
        }
        Peer next = new Peer(2);
        store.handle(next, VGPU, new WorkerMessage.Want("a"));
        assertEquals(List.of("none a"), next.told);
        keep(VGPU, "a", BYTES);
        assertEquals(List.of("a"), store.digests(VGPU), "another worker must be able to store the image");
    }

    @Test
    void shouldSealWhatItKeeps() throws IOException {
        worker.offers("a", BYTES);
        worker.hasStored("a");
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = arena.allocate(BYTES);
            assertThrows(IOException.class, () -> SealedMemory.write(worker.given, bytes));
        }
    }

    /** A new vGPU of the same name may belong to another tenant. */
    @Test
    void shouldForgetTheImagesOfADeletedVgpu() throws IOException {
        int first = keep(VGPU, "a", BYTES);
        int second = keep("other", "b", BYTES);
        assertTrue(isImage(first));
        store.forget(VGPU);
        assertFalse(isImage(first), "the store must close the image's memory");
        assertTrue(isImage(second));
        assertEquals(List.of(), store.digests(VGPU));
        assertEquals(List.of("b"), store.digests("other"));
        assertEquals(BYTES, store.bytes());
        Peer next = new Peer(2);
        store.handle(next, VGPU, new WorkerMessage.Want("a"));
        assertEquals(List.of("none a"), next.told);
    }

    @Test
    void shouldBoundTheMemoryOfAllVgpusAndTakeItFromTheOneThatHasMost() {
        keep("large", "l1", 5 * BYTES);
        keep("large", "l2", 5 * BYTES);
        keep("small", "s1", 4 * BYTES);
        keep("middle", "m1", 6 * BYTES);
        assertEquals(20 * BYTES, store.bytes());
        keep("new", "n1", 2 * BYTES);
        assertEquals(List.of("l2"), store.digests("large"), "the vGPU with most bytes must lose its oldest image");
        assertEquals(List.of("n1"), store.digests("new"));
        keep("large", "l3", 5 * BYTES);
        assertEquals(List.of("l3"), store.digests("large"),
            "the vGPU with most bytes, its offer included, must lose an image");
        keep("small", "s2", 3 * BYTES);
        keep("small", "s3", 3 * BYTES);
        assertEquals(List.of("s2", "s3"), store.digests("small"),
            "a vGPU that would have most bytes must lose its own oldest image");
        assertEquals(List.of("m1"), store.digests("middle"));
        assertTrue(store.bytes() <= 20 * BYTES, "bytes=" + store.bytes());
    }

    @Test
    void shouldBoundTheNumberOfImagesOfAllVgpus() {
        for (int i = 0; i < 4; i++) {
            keep("a", "a" + i, 1);
            keep("b", "b" + i, 1);
        }
        keep("c", "c0", BYTES);
        keep("c", "c1", BYTES);
        assertEquals(List.of("c0", "c1"), store.digests("c"));
        assertEquals(9, store.size());
        assertEquals(3, Math.min(store.digests("a").size(), store.digests("b").size()),
            "one of the vGPUs with most images must lose one");
    }

    @Test
    void shouldCountWhatIsBeingWritten() {
        Peer other = new Peer(2, "other");
        other.offers("x", 10 * BYTES);
        Peer third = new Peer(3, "third");
        third.offers("y", 9 * BYTES);
        worker.offers("a", 2 * BYTES);
        assertEquals(List.of(), worker.told, "without room or a removable image, the store must not accept the offer");
        worker.offers("b", BYTES);
        assertEquals(List.of("store b"), worker.told);
    }
}
