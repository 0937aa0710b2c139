package io.hawser.broker.stream;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;

/**
 * A client of the stream. Frames wait here while the network has not taken the last one. A client that is too slow
 * loses frames, and gets a full picture when it can receive again. Thread-safe.
 */
final class Client implements Flow.Subscription {
    /** Waiting frames of one client: half a minute of changes and as many events. All clients share the strings. */
    static final int MAX_WAITING = 64;

    private final Flow.Subscriber<? super Frame> subscriber;
    private final Executor executor;
    private final Runnable wantsPicture;
    private final Runnable onLeave;
    private final Deque<Frame> waiting = new ArrayDeque<>();
    private long requested;
    private boolean behind = true;
    private boolean over;
    private boolean completed;
    private boolean sending;

    /**
     * Makes a client that waits for its first picture.
     *
     * @param executor runs the sending tasks, one after the other.
     * @param wantsPicture runs when the client lacks a picture and can receive one.
     * @param onLeave runs once when the client has left.
     */
    Client(Flow.Subscriber<? super Frame> subscriber, Executor executor, Runnable wantsPicture, Runnable onLeave) {
        this.subscriber = subscriber;
        this.executor = executor;
        this.wantsPicture = wantsPicture;
        this.onLeave = onLeave;
    }

    /** Queues a frame, unless the client lacks a picture. Never blocks. */
    void offer(Frame frame) {
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

    /** Whether the client needs a picture and can receive it. */
    synchronized boolean canTakePicture() {
        return behind && !over && requested > 0;
    }

    /** Queues a picture, after which the client receives frames again. */
    void offerPicture(Frame picture) {
        synchronized (this) {
            if (over || !behind) {
                return;
            }
            behind = false;
            waiting.add(picture);
        }
        send();
    }

    /** Ends the stream; the client can open a new one. */
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
            onLeave.run();
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
