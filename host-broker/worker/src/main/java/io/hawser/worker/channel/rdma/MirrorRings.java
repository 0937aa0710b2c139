package io.hawser.worker.channel.rdma;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.EventPoll;
import io.hawser.shm.os.StreamSocket;
import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.ring.GuestRings;
import io.hawser.worker.channel.ring.RingSleep;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/** The rings of a mirror, and the guest behind them: its end of RDMA, and its connection. Session thread. */
final class MirrorRings implements GuestRings {
    private static final Logger LOG = System.getLogger(MirrorRings.class.getName());

    private static final int LEAVE_LIMIT_MS = 1000;
    /** Turns of a busy session thread between two looks at the connection. A sleeping thread learns of its end. */
    private static final int TURNS_A_LOOK = 4096;
    /** The sleep while replies cannot be sent: no event tells of room in the queue pair. */
    private static final long OWING_LIMIT_NS = 1_000_000;

    private final RdmaEnd end;
    private final StreamSocket socket;
    private final RemoteMemory memory;
    private final RingReader commands;
    private final RingWriter replies;
    private final Sleep sleep;
    private long sentBytes; // of the replies: what the guest can see
    private boolean isLost; // nothing can be sent or received any more
    private boolean isLookDue;
    private int turns;
    private String departure;

    MirrorRings(RdmaEnd end, StreamSocket socket, EventFd doorbell) {
        this.end = end;
        this.socket = socket;
        memory = new RemoteMemory(end);
        commands = new RingReader(end.mirror(), RecordLayout.MIRROR_COMMAND_OFFSET, RecordLayout.MIRROR_RING_BYTES,
            end.words(), RdmaEnd.OWN_HEAD_OFFSET, RdmaEnd.PEER_TAIL_OFFSET);
        replies = new RingWriter(end.mirror(), RecordLayout.MIRROR_REPLY_OFFSET, RecordLayout.MIRROR_RING_BYTES,
            end.words(), RdmaEnd.PEER_HEAD_OFFSET, RdmaEnd.OWN_TAIL_OFFSET);
        sleep = new Sleep(doorbell);
    }

    @Override
    public RingReader commands() {
        return commands;
    }

    @Override
    public RingWriter replies() {
        return replies;
    }

    /** The guest's memory, which this end writes. */
    RemoteMemory memory() {
        return memory;
    }

    @Override
    public RingSleep sleep() {
        return sleep;
    }

    @Override
    public void committed() {
        long committed = replies.published();
        if (isLost || sentBytes == committed) {
            return;
        }
        int room = end.canSend();
        if (room > 0 && end.sendTail(sentBytes, committed) == 0) {
            sentBytes = committed;
        } else if (room != 0) {
            loseConnection();
        }
    }

    @Override
    public boolean owesReplies() {
        return !isLost && sentBytes != replies.published();
    }

    @Override
    public void released() {
        if (!isLost && end.taken(commands.published()) != 0) {
            loseConnection();
        }
    }

    @Override
    public boolean progress() {
        if (isLost) {
            return false;
        }
        int done = end.progress();
        if (done < 0) {
            loseConnection();
        }
        return memory.settle() | done != 0;
    }

    private void loseConnection() {
        String fault = end.fault();
        lose(fault == null ? "the RDMA connection is lost" : fault);
    }

    /** Notes the first reason for which the session cannot go on. */
    void lose(String reason) {
        isLost = true;
        memory.lose();
        if (departure == null) {
            departure = reason;
        }
    }

    @Override
    public String departure() {
        if (departure != null) {
            return departure;
        }
        if (end.hasPeerLeft()) {
            departure = "the guest has left";
        } else if (isLookDue || ++turns % TURNS_A_LOOK == 0) {
            isLookDue = false;
            String seen = switch (socket.look()) {
                case QUIET -> null;
                case SENT -> "the guest must send nothing on its connection while its records go by RDMA";
                case ENDED -> "the guest has closed the connection";
            };
            if (seen != null) {
                // Records that have arrived before are served first, but not for ever if the guest goes on sending.
                for (int i = 0; i < RecordLayout.MIRROR_RECEIVES && progress(); i++) {
                    Thread.onSpinWait();
                }
                departure = departure == null ? seen : departure;
            }
        }
        return departure;
    }

    @Override
    public void closed(boolean inOrder) {
        if (inOrder && !isLost && end.leave(LEAVE_LIMIT_MS) != 0) {
            LOG.log(Level.DEBUG, "the guest may not have all replies: {0}", end.fault());
        }
        isLost = true;
        memory.lose();
        socket.shutdown();
    }

    /** Sleeps on the events of RDMA, the connection, and the doorbell of this process's other threads. */
    private final class Sleep extends RingSleep {
        private static final int CHANNEL = 0;
        private static final int CONNECTION = 1;
        private static final int DOORBELL = 2;

        private final EventFd doorbell;
        private final EventPoll events = new EventPoll();

        Sleep(EventFd doorbell) {
            this.doorbell = doorbell;
        }

        @Override
        protected void announce(boolean forRoom) {
            if (!isLost && end.arm() != 0) {
                loseConnection();
            }
        }

        @Override
        protected void await(long limitNs) throws IOException {
            events.watch(isLost ? -1 : end.channel(), socket.descriptor(), doorbell.fd());
            if (!events.await(owesReplies() ? Math.min(limitNs, OWING_LIMIT_NS) : limitNs)) {
                return;
            }
            if (events.isReady(CHANNEL)) {
                end.awake();
            }
            if (events.isReady(CONNECTION)) {
                isLookDue = true;
            }
            if (events.isReady(DOORBELL)) {
                doorbell.poll(0);
            }
        }

        @Override
        protected void rouse() {
            try {
                doorbell.signal();
            } catch (IOException e) {
                throw new IllegalStateException("a worker must be able to signal its doorbell", e);
            }
        }
    }
}
