package io.hawser.worker.session;

/**
 * One copy between the guest's memory and the device for which its stream waits ({@link WaitWords}). The carrier begins
 * when the stream has reached the copy, and the copy ends with the reply to its call. Session thread.
 */
abstract class AwaitedCopy {
    final StreamWork work;
    final StreamState stream;
    final GuestPlace place;
    WaitWords.Word word; // null before begin, and if the driver takes no further memory
    int result;
    private final Call call;
    private boolean isOpen;

    AwaitedCopy(StreamWork work, Call call, StreamState stream, GuestPlace place) {
        this.work = work;
        this.call = call;
        this.stream = stream;
        this.place = place;
    }

    /** Issues the copy. */
    final void begin() {
        word = work.waitWords().take();
        if (word == null) {
            result = CudaResult.OUT_OF_MEMORY;
        } else {
            work.whenReached(stream, this::reached);
            work.seal();
            result = issue();
            work.opened(this, stream, entries());
        }
        work.whenReached(stream, this::finish);
    }

    /** Makes the stream wait, and issues what it does between its waits. Returns a CUresult. */
    abstract int issue();

    /** Entries of the stream's queue that {@link #issue} makes. */
    abstract long entries();

    /** Lets the carrier go on, if it can: the stream has reached the copy, or a part of the copy has ended. */
    abstract void proceed();

    /** The stream has reached the copy, or a place in it. */
    final void reached(int status) {
        result = result == 0 ? status : result;
        proceed();
    }

    /** Whether the stream no longer waits. */
    final boolean isOpen() {
        return isOpen;
    }

    /** Releases the stream: the carrier has done its part, or the copy has failed, or the session is over. */
    final void open() {
        if (!isOpen && word != null) {
            isOpen = true;
            word.open();
            work.closed(this);
        }
    }

    private void finish(int status) {
        open();
        if (word != null && status == 0) { // a failed context may leave its streams waiting
            word.give();
        }
        work.ended(call, result != 0 ? result : status);
    }
}
