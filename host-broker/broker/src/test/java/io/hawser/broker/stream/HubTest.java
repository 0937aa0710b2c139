package io.hawser.broker.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Flow;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class HubTest {
    private static final Frame PICTURE = new Frame("picture", "{}");
    private final AtomicLong nowNs = new AtomicLong();
    private final AtomicInteger wakes = new AtomicInteger();
    private boolean may = true;
    private final Hub hub = new Hub(2, nowNs::get, wakes::incrementAndGet);

    /** A client that keeps the frames that it receives. */
    private static final class Taker implements Flow.Subscriber<Frame> {
        private final List<Frame> taken = new ArrayList<>();
        private Flow.Subscription subscription;
        private boolean completed;

        @Override
        public void onSubscribe(Flow.Subscription given) {
            subscription = given;
        }

        @Override
        public void onNext(Frame frame) {
            taken.add(frame);
        }

        @Override
        public void onError(Throwable failure) {
            throw new AssertionError(failure);
        }

        @Override
        public void onComplete() {
            completed = true;
        }
    }

    private Taker watch(long requests) {
        Taker taker = new Taker();
        hub.open(Runnable::run, () -> may).subscribe(taker);
        taker.subscription.request(requests);
        return taker;
    }

    private static Frame change(int i) {
        return new Frame("change", "" + i);
    }

    @Test
    void shouldGoOnWithAClientThatAsksForMoreThanThereIs() {
        Taker taker = watch(Long.MAX_VALUE);
        taker.subscription.request(Long.MAX_VALUE);
        hub.sendPictures(() -> PICTURE);
        hub.send(change(1));
        assertEquals(List.of(PICTURE, change(1)), taker.taken);
    }

    @Test
    void shouldGiveAPictureFirstAndThenWhatComes() {
        Taker taker = watch(10);
        assertEquals(1, wakes.get(), "a new client must request a picture");
        hub.send(change(1));
        assertEquals(List.of(), taker.taken, "a client must get no change before its picture");
        hub.sendPictures(() -> PICTURE);
        hub.sendPictures(() -> PICTURE);
        hub.send(change(2));
        assertEquals(List.of(PICTURE, change(2)), taker.taken);
    }

    @Test
    void shouldDropASlowClientToAFreshPicture() {
        Taker slow = watch(2);
        Taker fast = watch(Long.MAX_VALUE);
        hub.sendPictures(() -> PICTURE);
        for (int i = 0; i < 1000; i++) {
            hub.send(change(i));
        }
        assertEquals(List.of(PICTURE, change(0)), slow.taken, "a slow client must get only the requested frames");
        assertEquals(1001, fast.taken.size(), "the other client must not wait for the slow client");
        hub.sendPictures(() -> PICTURE);
        assertEquals(2, slow.taken.size(), "a client without a request must get no picture");
        slow.subscription.request(2);
        hub.sendPictures(() -> PICTURE);
        hub.send(change(1000));
        assertEquals(List.of(PICTURE, change(0), PICTURE, change(1000)), slow.taken);
    }

    @Test
    void shouldForgetWhoLeaves() {
        Taker one = watch(1);
        watch(1);
        assertTrue(hub.isFull());
        one.subscription.cancel();
        one.subscription.cancel();
        assertFalse(hub.isFull());
        hub.sendPictures(() -> PICTURE);
        assertEquals(List.of(), one.taken);
        assertEquals(1, hub.size());
    }

    @Test
    void shouldShowThatItLivesAndEndWhatLasts() {
        Taker taker = watch(100);
        hub.sendPictures(() -> PICTURE);
        nowNs.addAndGet(Hub.ALIVE.toNanos());
        hub.tick();
        hub.tick();
        assertEquals(List.of(PICTURE, Frame.ALIVE), taker.taken);
        assertFalse(taker.completed);
        nowNs.addAndGet(Hub.LIFETIME.minus(Duration.ofSeconds(1)).toNanos());
        hub.tick();
        assertTrue(taker.completed);
        assertEquals(0, hub.size());
    }

    @Test
    void shouldEndTheStreamOfWhoMayNotWatchAnyMore() {
        Taker taker = watch(100);
        nowNs.addAndGet(Hub.ALIVE.toNanos());
        hub.tick();
        assertFalse(taker.completed);
        may = false;
        nowNs.addAndGet(Hub.ALIVE.toNanos());
        hub.tick();
        assertTrue(taker.completed);
        assertEquals(0, hub.size());
    }

    @Test
    void shouldEndAllWhenItCloses() {
        Taker waits = watch(0);
        hub.close();
        assertTrue(waits.completed);
        assertEquals(0, hub.size());
    }
}
