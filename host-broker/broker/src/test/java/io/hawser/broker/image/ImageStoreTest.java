package io.hawser.broker.image;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.pool.ImagePeer;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.shm.os.SealedMemory;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class ImageStoreTest {
    private static final String VGPU = "tenant";
    private static final long BYTES = 1000;

    private final ImageStore store = new ImageStore(new ImageStore.Limits(4, 10 * BYTES));
    private final Peer worker = new Peer(1);

    /** Writes what it is given memory for only when the test says so. */
    private final class Peer implements ImagePeer {
        private final long id;
        private final List<String> told = new ArrayList<>();

        Peer(long id) {
            this.id = id;
        }

        @Override
        public long id() {
            return id;
        }

        @Override
        public void giveImage(String type, String sha256, long bytes, int descriptor) {
            told.add(type + " " + sha256);
            if (type.equals("store")) {
                try (Arena arena = Arena.ofConfined()) {
                    SealedMemory.write(descriptor, arena.allocate(bytes));
                } catch (IOException e) {
                    throw new AssertionError(e);
                }
            }
        }

        @Override
        public void tellNoImage(String sha256) {
            told.add("none " + sha256);
        }

        void offers(String sha256, long bytes) {
            store.said(this, VGPU, new WorkerMessage.Image(sha256, bytes));
        }

        void hasStored(String sha256) {
            store.said(this, VGPU, new WorkerMessage.Stored(sha256));
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
        assertEquals(List.of("store a"), worker.told, "one at a time");
        worker.hasStored("a");
        worker.hasStored("b");
        worker.hasStored("c");
        assertEquals(List.of("store a", "store b", "store c"), worker.told);
        assertEquals(List.of("a", "b", "c"), store.known(VGPU));
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
        assertEquals(List.of("b"), store.known(VGPU));
    }

    @Test
    void shouldBoundWhatWaits() {
        for (int i = 0; i < 1000; i++) {
            worker.offers("image " + i, BYTES);
        }
        for (int i = 0; i < 1000; i++) {
            worker.hasStored("image " + i);
        }
        assertEquals(65, worker.told.size(), "one at once, 64 behind it");
        assertEquals(4, store.size());
    }

    @Test
    void shouldForgetWhatAWorkerThatIsGoneHasOffered() {
        worker.offers("a", BYTES);
        worker.offers("b", BYTES);
        store.gone(worker);
        worker.hasStored("a");
        assertEquals(List.of("store a"), worker.told);
        assertEquals(0, store.size());
        Peer next = new Peer(2);
        next.offers("b", BYTES);
        next.hasStored("b");
        assertEquals(List.of("b"), store.known(VGPU));
    }

    @Test
    void shouldGiveWhatItKeepsAndSayWhatItDoesNot() {
        worker.offers("a", BYTES);
        worker.hasStored("a");
        Peer next = new Peer(2);
        store.said(next, VGPU, new WorkerMessage.Want("a"));
        store.said(next, VGPU, new WorkerMessage.Want("b"));
        store.said(next, "another tenant", new WorkerMessage.Want("a"));
        assertEquals(List.of("image a", "none b", "none a"), next.told);
    }
}
