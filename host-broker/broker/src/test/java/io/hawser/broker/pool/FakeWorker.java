package io.hawser.broker.pool;

import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerAccount;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.DescriptorSocket;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** A worker process for tests, which uses the control protocol on descriptor 3 and misbehaves as its mode demands. */
public final class FakeWorker {
    private static final int CONTROL = 3;
    /** A mode, followed by a folder. The worker becomes ready once it has removed a file from the folder. */
    public static final String GATED = "gated=";
    private static final int WELCOME_PAYLOAD_BYTES = 40;
    private static final String READY = "{\"type\":\"ready\",\"pid\":%d,\"backend\":\"fake\",\"devices\":[{\"name\":"
        + "\"Fake GPU\",\"uuid\":\"u-1\",\"totalBytes\":1073741824,\"pciBusId\":\"0000:01:00.0\","
        + "\"computeCapability\":\"9.0\"}]}";
    /** The GPUs of a worker in the mode {@code gpus}. */
    static final String[] GPUS = {"aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"};
    /** Bytes that each worker claims on its GPU for its session, if there is room. */
    static final long HELD_BYTES = 400;
    private static final String STATS = "{\"type\":\"stats\",\"calls\":%d,\"replies\":2,\"roundTrips\":3,"
        + "\"bytesIn\":%d,\"bytesOut\":5,\"refusedRecords\":1,\"kernels\":6,"
        + "\"gpuTimeMs\":7,\"waitedMs\":8}";

    private static DescriptorSocket descriptors; // set before the session

    private FakeWorker() {
    }

    /** Runs a worker. */
    public static void main(String[] args) {
        String mode = args[0];
        switch (mode) {
            case "crash" -> {
                System.err.println("fake worker crashes as told");
                System.exit(3);
            }
            case "silent" -> read(new byte[1]);
            case "malformed" -> {
                send("{\"type\":\"ready\",\"pid\":-1}");
                read(new byte[1]);
            }
            case "oversized" -> {
                write(CONTROL, ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putInt(1 << 20).array());
                read(new byte[1]);
            }
            case "unreachable" -> { // becomes ready, but cannot receive a session
                FakeSocket.shutdownReading(CONTROL);
                send(READY.formatted(ProcessHandle.current().pid()));
                while (true) {
                    java.util.concurrent.locks.LockSupport.park();
                }
            }
            default -> serve(mode);
        }
    }

    /** A ready message with two GPUs, or with the GPUs that the environment names. */
    private static String severalGpus(String backend) {
        String told = System.getenv("HAWSER_GPUS");
        String[] uuids = told == null ? GPUS : told.split(",");
        StringBuilder devices = new StringBuilder();
        for (String uuid : uuids) {
            devices.append(devices.isEmpty() ? "" : ",").append("{\"name\":\"Fake GPU\",\"uuid\":\"").append(uuid)
                .append("\",\"totalBytes\":1000}");
        }
        String visible = "GPU-" + String.join(",GPU-", uuids);
        if (told != null && !visible.equals(System.getenv("CUDA_VISIBLE_DEVICES"))) {
            System.err.println("the driver must be told the same GPUs: " + System.getenv("CUDA_VISIBLE_DEVICES"));
            System.exit(5);
        }
        return "{\"type\":\"ready\",\"pid\":" + ProcessHandle.current().pid() + ",\"backend\":\"" + backend
            + "\",\"devices\":[" + devices + "]}";
    }

    /** Waits for a file in a folder and removes it. Each file releases one of the waiting workers. */
    private static void awaitPermit(Path folder) {
        while (true) {
            try (Stream<Path> permits = Files.list(folder)) {
                for (Path permit : permits.toList()) {
                    if (Files.deleteIfExists(permit)) {
                        return;
                    }
                }
            } catch (IOException e) {
                System.err.println("no permits: " + e);
                System.exit(7);
            }
            java.util.concurrent.locks.LockSupport.parkNanos(5_000_000); // polls the folder
        }
    }

    private static void serve(String mode) {
        if (mode.startsWith(GATED)) {
            awaitPermit(Path.of(mode.substring(GATED.length())));
        }
        FakeMove move = new FakeMove(mode);
        send(mode.startsWith(FakeMove.MODE) ? severalGpus("fake") : switch (mode) {
            case "gpus" -> severalGpus("fake");
            case "nvidia" -> severalGpus("nvidia");
            default -> READY.formatted(ProcessHandle.current().pid());
        });
        int[] descriptor = {-1};
        String assign = receive(descriptor);
        int doorbell = -1;
        while (assign != null && !assign.contains("\"type\":\"assign\"") && !assign.contains("\"type\":\"end\"")) {
            if (assign.contains("\"type\":\"doorbell\"")) {
                doorbell = descriptor[0];
            } else if (assign.contains("\"type\":\"descriptors\"")) {
                descriptors = DescriptorSocket.of(descriptor[0]);
            } else if (assign.contains("\"type\":\"ledger\"")) {
                hold(assign, descriptor[0]);
            } else if (FakeMove.isType(assign, "mover")) {
                move.copy();
                return;
            } else if (move.take(assign, descriptor[0])) {
                descriptor[0] = -1;
            } // else the page of turns or its bell, which this worker ignores
            descriptor[0] = -1;
            assign = receive(descriptor);
        }
        if (assign == null || assign.contains("\"end\"")) {
            return;
        }
        if (descriptor[0] < 0) {
            System.err.println("no descriptor came with: " + assign);
            System.exit(4);
        }
        if (assign.contains("\"carrier\":\"shm\"")) {
            if (move.isArrival()) {
                move.arrive();
            }
            Thread.ofPlatform().daemon().start(() -> awaitEnd(mode, -1, move));
            FakeShmSession.serve(mode, assign, descriptor[0], doorbell, move.isArrival());
            send(STATS.formatted(100, 200));
            send("{\"type\":\"ended\",\"reason\":\"the guest has left\",\"error\":false}");
            return;
        }
        if (move.isArrival()) {
            move.arrive();
        } else {
            welcome(descriptor[0], Long.parseLong(assign.replaceAll(".*\"sessionId\":(\\d+).*", "$1")));
        }
        if (mode.equals("flood")) {
            // Sends until the broker closes the socket.
            while (write(CONTROL, frame(STATS.formatted(1, 1)))) {
                Thread.yield();
            }
            return;
        }
        send(STATS.formatted(10, 20));
        int guest = descriptor[0];
        Thread.ofPlatform().daemon().start(() -> awaitEnd(mode, guest, move));
        echo(guest);
        send(STATS.formatted(100, 200));
        send("{\"type\":\"ended\",\"reason\":\"the guest has left\",\"error\":false}");
    }

    /** Claims {@link #HELD_BYTES} of the first GPU, like a worker whose guest allocates. */
    private static void hold(String ledger, int descriptor) {
        int slots = Integer.parseInt(ledger.replaceAll(".*\"slots\":(\\d+).*", "$1"));
        int slot = Integer.parseInt(ledger.replaceAll(".*\"slot\":(\\d+).*", "$1"));
        try {
            Ledger shared = new Ledger(SharedMemory.mapWhileReachable(descriptor, LedgerLayout.bytes(slots)), slots);
            String told = System.getenv("HAWSER_GPUS");
            List<String> gpus = List.of(ledger.replaceAll(".*\"gpus\":\\[([^\\]]*)\\].*", "$1").replace("\"", "")
                .split(","));
            if (!new LedgerAccount(shared, slot).claim(told == null ? 0 : Math.max(0, gpus.indexOf(told)),
                HELD_BYTES)) {
                System.err.println("no room in: " + ledger);
            }
        } catch (IOException e) {
            System.err.println("no ledger: " + e.getMessage());
            System.exit(6);
        }
    }

    /**
     * Passes the broker's answers about names to the guest, a line each, until the broker ends the session. The line of
     * an answer with a descriptor ends with a plus sign. A stripe gets its message.
     */
    private static void awaitEnd(String mode, int guest, FakeMove move) {
        int[] descriptor = {-1};
        String message = receive(descriptor);
        while (message != null && (move.handle(message, descriptor[0], guest, descriptors)
            || message.contains("\"name\":") || message.contains("\"stripe\""))) {
            if (message.contains("\"type\":\"move")) {
                descriptor[0] = -1;
                message = receive(descriptor);
                continue;
            }
            boolean isStripe = message.contains("\"stripe\"");
            writeAll(isStripe ? descriptor[0] : guest,
                (message + (descriptor[0] < 0 ? "\n" : "+\n")).getBytes(StandardCharsets.UTF_8));
            descriptor[0] = -1;
            message = receive(descriptor);
        }
        if (message == null || !mode.equals("stubborn")) {
            if (message != null) {
                send("{\"type\":\"ended\",\"reason\":\"told to\",\"error\":false}");
            }
            Runtime.getRuntime().halt(0);
        }
    }

    private static void echo(int socket) {
        byte[] bytes = new byte[4096];
        while (echoOnce(socket, bytes)) {
            java.util.concurrent.locks.LockSupport.parkNanos(100_000);
        }
    }

    /** Returns false at the end of the guest. */
    private static boolean echoOnce(int socket, byte[] bytes) {
        FakeMove.QUIET.lock(); // a session that moves is served by nobody
        try {
            int count = FakeSocket.read(socket, bytes);
            if (count > 0) {
                byte[] back = java.util.Arrays.copyOf(bytes, count);
                String text = new String(back, StandardCharsets.US_ASCII);
                if (text.startsWith("die")) {
                    Runtime.getRuntime().halt(9);
                }
                if (text.startsWith("pass ")) { // descriptor 0 to the broker, and then the message behind this word
                    passInput();
                    text = text.substring("pass ".length());
                }
                if (text.startsWith("fault")) {
                    send("{\"type\":\"lost\",\"result\":700}");
                }
                if (text.startsWith("{\"type\":")) { // a message for the broker
                    write(CONTROL, frame(text));
                    return true;
                }
                if (text.startsWith("total")) {
                    back = ("total=" + FakeMove.TOTAL.get() + " gpus=" + System.getenv("HAWSER_GPUS") + "\n")
                        .getBytes(StandardCharsets.US_ASCII);
                } else {
                    FakeMove.TOTAL.addAndGet(count);
                }
                writeAll(socket, back);
            }
            return count > 0 || count == FakeSocket.EAGAIN;
        } finally {
            FakeMove.QUIET.unlock();
        }
    }

    private static void passInput() {
        try {
            descriptors.send(0);
        } catch (IOException e) {
            System.err.println("the broker takes no descriptor: " + e.getMessage());
            System.exit(8);
        }
    }

    /** Writes all bytes, and waits while the socket is full. */
    private static void writeAll(int socket, byte[] bytes) {
        for (int at = 0; at < bytes.length;) {
            byte[] rest = java.util.Arrays.copyOfRange(bytes, at, bytes.length);
            int count = FakeSocket.write(socket, rest);
            if (count > 0) {
                at += count;
            } else if (count == FakeSocket.EAGAIN) {
                java.util.concurrent.locks.LockSupport.parkNanos(100_000);
            } else {
                return;
            }
        }
    }

    private static void welcome(int socket, long sessionId) {
        ByteBuffer record = ByteBuffer.allocate(32 + WELCOME_PAYLOAD_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        record.putInt(0, record.capacity()).putInt(4, 4).putInt(32, 1).putInt(36, 1).putLong(40, sessionId);
        write(socket, record.array());
    }

    /** Ends the process, which breaks a rule of the test. */
    static void fail(String reason) {
        System.err.println(reason);
        Runtime.getRuntime().halt(14);
    }

    static void sendStats(int calls) {
        send(STATS.formatted(calls, 20));
    }

    static void send(String json) {
        write(CONTROL, frame(json));
    }

    private static byte[] frame(String json) {
        byte[] bytes = json.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(4 + bytes.length).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).put(bytes)
            .array();
    }

    private static boolean write(int descriptor, byte[] bytes) {
        return FakeSocket.write(descriptor, bytes) == bytes.length;
    }

    private static boolean read(byte[] into) {
        for (int at = 0; at < into.length;) {
            byte[] rest = new byte[into.length - at];
            int count = FakeSocket.read(CONTROL, rest);
            if (count <= 0) {
                return false;
            }
            System.arraycopy(rest, 0, into, at, count);
            at += count;
        }
        return true;
    }

    /** Receives a message, or null at the end of the socket. Stores a descriptor that came with the message. */
    static String receive(int[] descriptor) {
        byte[] head = new byte[4];
        if (FakeSocket.receive(CONTROL, head, descriptor) != head.length) {
            return null;
        }
        byte[] json = new byte[ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).getInt(0)];
        return read(json) ? new String(json, StandardCharsets.UTF_8) : null;
    }
}
