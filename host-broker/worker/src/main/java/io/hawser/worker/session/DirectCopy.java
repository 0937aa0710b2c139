package io.hawser.worker.session;

import io.hawser.cuda.backend.Signals;
import io.hawser.worker.channel.GuestMemory;
import io.hawser.worker.session.DeviceArena.Carried;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;

/** One copy between the guest's memory and the GPU's that the carrier makes alone (GPUDirect). Session thread. */
final class DirectCopy extends AwaitedCopy {
    private static final Logger LOG = System.getLogger(DirectCopy.class.getName());

    /** Length of a request. */
    private static final int PIECE_BYTES = 1 << 20;
    /** Requests at one time. They keep the carrier busy, and replies of other calls wait for few of them. */
    private static final int REQUESTS = 8;

    private final DeviceArena arena;
    private final List<Carried> parts;
    private final boolean toDevice;
    private int part; // of the next request
    private long done; // bytes of this part for which there are requests
    private long requested; // bytes of all parts
    private int unfinished; // requests
    private boolean isRequesting;

    DirectCopy(StreamWork work, DeviceArena arena, Call call, StreamState stream, GuestPlace place,
        List<Carried> parts, boolean toDevice) {
        super(work, call, stream, place);
        this.arena = arena;
        this.parts = parts;
        this.toDevice = toDevice;
    }

    @Override
    int issue() {
        return word.await(stream.stream());
    }

    @Override
    long entries() {
        return Signals.AWAIT_ENTRIES;
    }

    @Override
    void proceed() {
        if (isRequesting) {
            return; // a request that ended at once
        }
        isRequesting = true;
        try {
            while (result == 0 && !isOpen() && unfinished < REQUESTS && part < parts.size()) {
                request();
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "memory of the GPU cannot be used for RDMA: {0}", e.getMessage());
            result = CudaResult.OUT_OF_MEMORY;
        } finally {
            isRequesting = false;
        }
        if (unfinished == 0 && !isOpen()) {
            result = result == 0 && toDevice ? flush() : result;
            open();
        }
    }

    private void request() throws IOException {
        Carried here = parts.get(part);
        GuestMemory carrier = work.guestMemory();
        int bytes = (int) Math.min(PIECE_BYTES, here.bytes() - done);
        long there = place.address() + requested;
        if (toDevice) {
            carrier.read(there, place.key(), here.piece(), here.offset() + done, bytes, this::ended);
        } else {
            carrier.write(there, place.key(), here.piece(), here.offset() + done, bytes, this::ended);
        }
        unfinished++; // a request that ended at once has counted one less
        requested += bytes;
        done += bytes;
        if (done == here.bytes()) {
            part++;
            done = 0;
        }
    }

    private void ended() {
        unfinished--;
        proceed();
    }

    private int flush() {
        int entered = work.enter(stream.context());
        return entered != 0 ? entered : arena.flush(parts.getFirst().device());
    }
}
