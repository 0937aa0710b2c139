package io.hawser.worker.swap;

import io.hawser.worker.control.ControlSocket;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** A session's way to the keeper of its GPU. The broker has connected both. */
public final class KeeperLink implements AutoCloseable {
    private static final Logger LOG = System.getLogger(KeeperLink.class.getName());

    /** The end of a request. */
    public interface Listener {
        /** The keeper has stored or loaded a slab, or failed to; CUresult. Any thread, in any order. */
        void done(long slab, int result);

        /** The keeper has gone, and with it what it kept. Any thread, once, not after {@link KeeperLink#close}. */
        void gone();
    }

    private final ControlSocket socket;
    private volatile boolean isClosed;

    /**
     * Takes over a connected socket.
     *
     * @param descriptor a Unix stream socket, closed with this.
     */
    public KeeperLink(int descriptor) {
        socket = new ControlSocket(descriptor);
    }

    /** Starts the thread that receives replies. Call it once. */
    public void start(Listener listener) {
        Thread reader = new Thread(() -> read(listener), "keeper-reader");
        reader.setDaemon(true);
        reader.start();
    }

    private void read(Listener listener) {
        try {
            for (ControlSocket.Frame frame = socket.read(); frame != null; frame = socket.read()) {
                SlabFrame reply = SlabFrame.decode(frame.json());
                listener.done(reply.slab(), reply.result());
            }
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the keeper cannot be read", e);
        }
        if (!isClosed) {
            listener.gone();
        }
    }

    /**
     * Lets the keeper copy a slab to its memory; {@link Listener#done} follows.
     *
     * @param slab number of the slab, chosen by the caller; 0 or more.
     * @param descriptor of the slab's memory, still the caller's afterwards.
     */
    public void store(long slab, long bytes, int descriptor) throws IOException {
        socket.write(new SlabFrame(SlabFrame.Action.STORE, slab, bytes, 0).encode(), descriptor);
    }

    /** Lets the keeper copy a slab back and forget it; as {@link #store}. */
    public void load(long slab, long bytes, int descriptor) throws IOException {
        socket.write(new SlabFrame(SlabFrame.Action.LOAD, slab, bytes, 0).encode(), descriptor);
    }

    /** Ends the connection; the keeper forgets all slabs of the session. */
    @Override
    public void close() {
        isClosed = true;
        socket.close();
    }
}
