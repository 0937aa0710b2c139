package io.hawser.broker.stream;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;

/**
 * Somebody who watches. Frames wait here while the network has not taken the last one; who is too slow for them loses
 * them and gets a fresh picture when it is there again. Thread-safe.
 */
final class Client implements Flow.Subscription {
    /** Frames that wait for one client: half a minute of changes and as many events. Strings shared by all. */
    static final int MAX_WAITING = 64;

    private final Flow.Subscriber<? super Frame> subscriber;
    private final Executor executor;
    private final Runnable wantsPicture;
    private final Runnable left;
    private final Deque<Frame> waiting = new ArrayDeque<>();
    private long requested;
    private boolean behind = true;
    private boolean over;
    private boolean completed;
    private boolean sending;

    /**
     * Makes a client that waits for its first picture.
     *
     * @param executor sends; one after the other.
     * @param wantsPicture told when it is behind and can take a picture.
     * @param left told once when it is gone.
     */
    Client(Flow.Subscriber<? super Frame> subscriber, Executor executor, Runnable wantsPicture, Runnable left) {
        this.subscriber = subscriber;
        this.executor = executor;
        this.wantsPicture = wantsPicture;
        this.left = left;
    }

    /** Gives it a frame; it is not for a client that is behind. Never waits. */
    void give(Frame frame) {
        synchronized (this) {
            if (over || behind) {
                return;
            }
            if (waiting.size() >= MAX_WAITING) {
                waiting.clear();
                behind = true;
                return;
            }
            waiting.add(frame);
        }
        send();
    }

    /** Whether it is to be given a picture. */
    synchronized boolean canTakePicture() {
        return behind && !over && requested > 0;
    }

    /** Gives it a picture: it is behind no more. */
    void givePicture(Frame picture) {
        synchronized (this) {
            if (over || !behind) {
                return;
            }
            behind = false;
            waiting.add(picture);
        }
        send();
    }

    /** Its time is over; it comes back if it wants. */
    void finish() {
        synchronized (this) {
            completed = true;
        }
        send();
    }

    @Override
    public void request(long n) {
        boolean picture;
        synchronized (this) {
            requested = requested + n < 0 ? Long.MAX_VALUE : requested + n;
            picture = behind && !over;
        }
        if (picture) {
            wantsPicture.run();
        }
        send();
    }

    @Override
    public void cancel() {
        boolean first;
        synchronized (this) {
            first = !over;
            over = true;
            waiting.clear();
        }
        if (first) {
            left.run();
        }
    }

    private void send() {
        synchronized (this) {
            if (sending) {
                return;
            }
            sending = true;
        }
        executor.execute(this::sendAll);
    }

    private void sendAll() {
        while (true) {
            Frame next;
            boolean end;
            synchronized (this) {
                end = completed && !over;
                next = over || requested == 0 ? null : waiting.poll();
                if (next == null || end) {
                    sending = false;
                    if (!end) {
                        return;
                    }
                } else {
                    requested--;
                }
            }
            if (end) {
                cancel();
                subscriber.onComplete();
                return;
            }
            subscriber.onNext(next);
        }
    }
}
