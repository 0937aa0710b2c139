package io.hawser.broker.pool;

import io.hawser.shm.os.DescriptorSocket;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A fake worker's part in a move. The state of a session is the number of bytes that its guest has sent. The source
 * writes an S on its socket to the mover, and the target an L; the mover answers both when it has both. The mode names
 * the role that fails, and how: {@code moves-die-source}.
 */
final class FakeMove {
    /** The beginning of the modes of workers that can move. */
    static final String MODE = "moves";
    /** Held by the thread that serves the guest while it serves, and by a source until the end of its move. */
    static final ReentrantLock QUIET = new ReentrantLock(true);
    /** Bytes that the guest has sent. */
    static final AtomicLong TOTAL = new AtomicLong();
    private static final int STATE_BYTES = 4096;
    /**
     * A mode, followed by a file: a session of an odd number of bytes cannot move, and the others answer when the file
     * exists, if the move has not ended before.
     */
    static final String REFUSES_ONE = MODE + "-refuse-one=";

    private final String mode;
    private boolean owesLateAnswer;
    private volatile boolean isStaying; // the end of the move has come before the answer
    private int state = -1; // of the session that comes
    private int link = -1;
    private boolean isFromAfar;

    FakeMove(String mode) {
        this.mode = mode;
    }

    static boolean isType(String message, String type) {
        return message.contains("\"type\":\"" + type + "\"");
    }

    private boolean is(String failure) {
        return mode.equals(MODE + "-" + failure);
    }

    /** Takes a message before the session; returns whether it was one of a move. */
    boolean take(String message, int descriptor) {
        if (isType(message, "movein")) {
            state = descriptor;
        } else if (isType(message, "movelink")) {
            link = descriptor;
        } else if (isType(message, "movestream")) {
            link = descriptor;
            isFromAfar = true;
        } else {
            return false;
        }
        return true;
    }

    /** Whether the session comes from another worker. */
    boolean isArrival() {
        return state >= 0 || isFromAfar;
    }

    /** Serves as the mover until the broker ends it. */
    void copy() {
        Map<String, Integer> sides = new HashMap<>();
        int[] descriptor = {-1};
        for (String message = FakeWorker.receive(descriptor); message != null; message = FakeWorker.receive(
            descriptor)) {
            if (isType(message, "end")) {
                return;
            }
            if (!isType(message, "moveside") || descriptor[0] < 0) {
                FakeWorker.fail("the mover expects sides: " + message);
            }
            String pair = message.replaceAll(".*\"pair\":(\\d+).*", "$1");
            boolean isSource = message.contains("\"source\":true");
            if (sides.put(pair + isSource, descriptor[0]) != null) {
                FakeWorker.fail("a side must come once: " + message);
            }
            if (is("die-mover")) {
                Runtime.getRuntime().halt(11);
            }
            if (sides.containsKey(pair + true) && sides.containsKey(pair + false)) {
                int source = sides.get(pair + true);
                int target = sides.get(pair + false);
                Thread.ofPlatform().daemon().start(() -> copy(source, target));
            }
            descriptor[0] = -1;
        }
    }

    private void copy(int source, int target) {
        if (read(source) != 'S' || read(target) != 'L') {
            return; // one of them has ended
        }
        FakeSocket.write(source, new byte[] {'D'});
        FakeSocket.write(target, new byte[] {'D'});
    }

    private static int read(int socket) {
        byte[] one = new byte[1];
        return FakeSocket.read(socket, one) == 1 ? one[0] : -1;
    }

    /** Restates the session, and waits for the end of the move. */
    void arrive() {
        if (is("die-target")) {
            Runtime.getRuntime().halt(12);
        }
        if (isFromAfar) {
            receive();
        } else {
            take();
        }
        if (is("silent-target")) {
            FakeWorker.receive(new int[1]);
            FakeWorker.fail("a silent worker gets no order");
        }
        FakeWorker.send("{\"type\":\"movedin\",\"reason\":\"" + (is("refuse-target") ? "an address differs" : "")
            + "\",\"ms\":5}");
        if (is("die-late")) {
            Runtime.getRuntime().halt(13);
        }
        String end = FakeWorker.receive(new int[1]);
        if (end == null || !end.contains("\"moved\":true")) {
            FakeWorker.fail("the session stays with its source: " + end);
        }
    }

    /** From another broker: an S and the state come by the connection, and a D answers. */
    private void receive() {
        byte[] all = new byte[1 + Long.BYTES];
        for (int at = 0; at < all.length;) {
            byte[] rest = new byte[all.length - at];
            int count = FakeSocket.read(link, rest);
            if (count <= 0 && count != FakeSocket.EAGAIN) {
                FakeWorker.fail("the source has gone");
            }
            System.arraycopy(rest, 0, all, at, Math.max(0, count));
            at += Math.max(0, count);
        }
        TOTAL.set(ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN).getLong(1));
        if (!is("refuse-target")) {
            FakeSocket.write(link, new byte[] {'D'});
        }
        Descriptors.close(link);
    }

    private void take() {
        try (SharedMemory memory = SharedMemory.map(state, STATE_BYTES, 0)) {
            TOTAL.set(memory.memory().get(ValueLayout.JAVA_LONG, 0));
        } catch (IOException e) {
            FakeWorker.fail("no state: " + e.getMessage());
        }
        FakeSocket.write(link, new byte[] {'L'});
        if (read(link) != 'D') {
            FakeWorker.fail("the mover has not answered");
        }
    }

    /**
     * Handles a message to the worker of a session; returns whether it was one of a move.
     *
     * @param guest the guest's socket; -1 in a region.
     */
    boolean handle(String message, int descriptor, int guest, DescriptorSocket descriptors) {
        if (isType(message, "moveout") && message.contains("\"address\"")) {
            send(descriptor);
        } else if (isType(message, "moveout")) {
            leave(descriptor, guest, descriptors);
        } else if (isType(message, "moveend")) {
            if (message.contains("\"moved\":true")) {
                FakeWorker.sendStats(15); // the last ones
                Runtime.getRuntime().halt(0);
            }
            isStaying = true;
            if (owesLateAnswer) {
                owesLateAnswer = false;
                answer(guest, descriptors);
            }
            if (QUIET.isHeldByCurrentThread()) {
                QUIET.unlock();
            }
        } else {
            return false;
        }
        return true;
    }

    /** Sends the session to another broker, and waits for its answer. */
    private void send(int connection) {
        QUIET.lock();
        if (is("die-source")) {
            Runtime.getRuntime().halt(10);
        }
        boolean refuses = is("refuse-source");
        FakeSocket.write(connection, ByteBuffer.allocate(1 + Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).put((byte) 'S')
            .putLong(TOTAL.get()).array());
        byte[] one = new byte[1];
        int count = refuses ? 0 : FakeSocket.read(connection, one);
        while (count == FakeSocket.EAGAIN) {
            LockSupport.parkNanos(1_000_000); // a connection of the broker's event loop does not block
            count = FakeSocket.read(connection, one);
        }
        Descriptors.close(connection);
        String reason = refuses ? "it uses a graph" : count == 1 ? "" : "the other worker does not take it";
        if (!reason.isEmpty()) {
            QUIET.unlock();
        }
        FakeWorker.send("{\"type\":\"moveready\",\"reason\":\"" + reason
            + "\",\"bytes\":8,\"socket\":false,\"stripes\":0}");
    }

    private void leave(int socket, int guest, DescriptorSocket descriptors) {
        QUIET.lock();
        if (is("die-source")) {
            Runtime.getRuntime().halt(10);
        }
        FakeSocket.write(socket, new byte[] {'S'});
        isStaying = false;
        if (mode.startsWith(REFUSES_ONE) && TOTAL.get() % 2 == 0) {
            Thread.ofPlatform().daemon().start(() -> answerWhenAllowed(guest, descriptors));
        } else if (is("silent-source")) {
            owesLateAnswer = true;
        } else if (is("refuse-source") || mode.startsWith(REFUSES_ONE)) {
            FakeWorker.send(
                "{\"type\":\"moveready\",\"reason\":\"it uses a graph\",\"bytes\":0,\"socket\":false,\"stripes\":0}");
        } else {
            answer(is("no-socket") ? -1 : guest, descriptors);
        }
    }

    private void answerWhenAllowed(int guest, DescriptorSocket descriptors) {
        while (!Files.exists(Path.of(mode.substring(REFUSES_ONE.length())))) {
            LockSupport.parkNanos(5_000_000); // polls the folder
        }
        if (!isStaying) {
            answer(guest, descriptors);
        }
    }

    private static void answer(int guest, DescriptorSocket descriptors) {
        try {
            int written = Descriptors.memory("fake-state", STATE_BYTES);
            try (SharedMemory memory = SharedMemory.map(written, STATE_BYTES, 0)) {
                MemorySegment all = memory.memory();
                all.set(ValueLayout.JAVA_LONG, 0, TOTAL.get());
            }
            descriptors.send(written);
            Descriptors.close(written);
            if (guest >= 0) {
                descriptors.send(guest);
            }
        } catch (IOException e) {
            FakeWorker.fail("the state cannot be passed: " + e.getMessage());
        }
        FakeWorker
            .send("{\"type\":\"moveready\",\"reason\":\"\",\"stripes\":0,\"bytes\":" + STATE_BYTES + ",\"socket\":"
                + (guest >= 0) + "}");
    }
}
