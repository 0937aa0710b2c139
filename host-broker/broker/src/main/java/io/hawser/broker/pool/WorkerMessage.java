package io.hawser.broker.pool;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Printable;
import io.hawser.broker.model.WorkerStats;
import io.hawser.shm.control.WorkerMessageType;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * A message of a worker on its control socket. The guest may control its worker, so the parser bounds every field. The
 * broker never uses a field as a path, a query or a format.
 */
public sealed interface WorkerMessage {
    /** Bytes of a whole message; bounds the memory that one worker makes the broker hold. */
    int MAX_MESSAGE_BYTES = 64 * 1024;
    /** Devices of one worker; stops a list that fills the inventory. */
    int MAX_DEVICES = 64;
    /** The largest image that a worker takes from its guest. */
    long MAX_IMAGE_BYTES = 1L << 30;
    /** Characters of a name or reason. The broker cuts longer texts, since a worker's reason may quote its guest. */
    int MAX_TEXT_CHARACTERS = 512;
    /** Digits of a handle; with the number of names it bounds the memory that one session makes the broker hold. */
    int MAX_HANDLE_CHARACTERS = 4096;

    /** The worker has opened its GPU and waits for a session. */
    record Ready(long pid, String backend, String jail, List<Device> devices) implements WorkerMessage {}

    /**
     * The worker has entered its jail; {@code listener} is the number of the descriptor of its seccomp listener, 0 to
     * 65535.
     */
    record Jailed(int listener) implements WorkerMessage {}

    /** Totals since the session began. */
    record Stats(WorkerStats totals) implements WorkerMessage {}

    /** The session's records go by RDMA. */
    record Carried() implements WorkerMessage {}

    /** A fault has ended the session's work on its GPU; {@code result} is a CUresult. */
    record Lost(long result) implements WorkerMessage {}

    /** The session has ended; {@code error} is whether it failed. */
    record Ended(String reason, boolean error) implements WorkerMessage {}

    /** A worker's message about device code; {@code sha256} is 64 lower-case hexadecimal digits. */
    sealed interface OfImage extends WorkerMessage {}

    /** The guest has sent device code of this digest and length, which the broker may keep. */
    record Image(String sha256, long bytes) implements OfImage {}

    /** The worker has written the image into the memory that it got; {@code sha256} is empty when it could not. */
    record Stored(String sha256) implements OfImage {}

    /** The worker requests device code that the broker keeps. */
    record Want(String sha256) implements OfImage {}

    /** The image that the worker got has another digest. */
    record Unfit(String sha256) implements OfImage {}

    /** A worker's message about memory for other sessions; {@code name} is 32 lower-case hexadecimal digits. */
    sealed interface OfMemory extends WorkerMessage {}

    /**
     * The guest shares memory, or an event.
     *
     * @param handle at most {@link #MAX_HANDLE_CHARACTERS} lower-case hexadecimal digits for the importing worker. The
     *     broker passes them on unread.
     * @param bytes length of the memory; 0 for an event.
     * @param column of its GPU in the vGPU's ledger, below {@link LedgerLayout#MAX_COLUMNS}; 0 for an event.
     * @param chargedBytes bytes that the worker has claimed for it; 0 for an event.
     * @param passed whether the worker has passed a descriptor for it on its socket for descriptors.
     */
    record Share(String name, String handle, long bytes, int column, long chargedBytes, boolean passed)
        implements OfMemory {
        /** Whether this is memory, not an event. */
        public boolean isMemory() {
            return bytes > 0;
        }
    }

    /** The guest has closed memory that it had found, or could not open it. */
    record Release(String name) implements OfMemory {}

    /** The shared memory or event no longer exists; the broker answers. */
    record Unshare(String name) implements OfMemory {}

    /** The guest looks for memory that another session has shared. */
    record Find(String name) implements OfMemory {}

    /** A worker's message about a session that may be swapped out. */
    sealed interface OfSwap extends WorkerMessage {}

    /**
     * The answer to the order to leave the GPU.
     *
     * @param bytes memory that the keeper has.
     * @param ms time in which memory was copied.
     * @param stays why the memory stays; empty when it has left.
     */
    record SwappedOut(long bytes, long ms, String stays) implements OfSwap {}

    /**
     * The answer to the order to come back.
     *
     * @param bytes memory that has come back.
     * @param ms time in which memory was copied.
     * @param problem why some memory has not come back; empty when all has.
     */
    record SwappedIn(long bytes, long ms, String problem) implements OfSwap {}

    /** The guest of a session that is out waits for it. */
    record SwapWanted() implements OfSwap {}

    /**
     * A part of a session has moved. The first on the way out says that its work has ended.
     *
     * @param bytes memory that has moved since the order.
     */
    record SwapMoved(long bytes) implements OfSwap {}

    /**
     * A keeper has allocated memory.
     *
     * @param bytes all of its memory for slabs.
     */
    record Kept(long bytes) implements OfSwap {}

    /**
     * The answer to the order to make no call of the driver.
     *
     * @param stays why the session goes on to make calls; empty when it makes none.
     */
    record SwapFrozen(String stays) implements OfSwap {}

    /** A worker's message about a session that moves to another GPU. */
    sealed interface OfMove extends WorkerMessage {}

    /**
     * The answer of a session's worker to the order to move out.
     *
     * @param reason why the session stays; empty when its state has been written.
     * @param bytes device memory of the session that the mover must copy.
     * @param socket whether the guest's socket follows the state's memory on the socket for descriptors.
     * @param stripes number of further connections of the guest that follow them.
     */
    record MoveReady(String reason, long bytes, boolean socket, int stripes) implements OfMove {
        /** Whether descriptors lie in the socket. */
        public boolean isReady() {
            return reason.isEmpty();
        }
    }

    /**
     * The answer of the worker that a session moves to.
     *
     * @param reason why it cannot have the session; empty when the session is complete there.
     * @param ms time from the worker's first look at the state.
     */
    record MovedIn(String reason, long ms) implements OfMove {}

    /** The state of a process, in the order of CUprocessState in cuda.h of CUDA 13.0. */
    enum ProcessState {
        RUNNING, LOCKED, CHECKPOINTED, FAILED
    }

    /**
     * A helper has moved a process, or has failed to.
     *
     * @param result CUresult.
     * @param state of the process afterwards.
     */
    record ProcessMoved(long pid, long result, ProcessState state, long ms) implements WorkerMessage {}

    /**
     * Parses a message.
     *
     * @throws MalformedException when the bytes are not a JSON object of a known type with valid fields.
     */
    static WorkerMessage parse(byte[] json) throws MalformedException {
        return Parser.parse(json);
    }

    /** A message that no honest worker sends; the broker kills the worker. */
    final class MalformedException extends Exception {
        private static final long serialVersionUID = 1L;

        MalformedException(String message) {
            super(message);
        }
    }

    /** Reads the JSON. */
    final class Parser {
        private static final ObjectMapper JSON = new ObjectMapper(JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder().maxNestingDepth(8).maxNumberLength(20)
                .maxStringLength(MAX_MESSAGE_BYTES).build())
            .build());

        private static final int MAX_DESCRIPTOR = 65535;
        private static final long MAX_AMOUNT = 1L << 44; // more bytes than any GPU has
        private static final Pattern DIGEST = Pattern.compile("[0-9a-f]{64}");
        private static final Pattern NAME = Pattern.compile("[0-9a-f]{32}");
        private static final Pattern HANDLE = Pattern.compile("(?:[0-9a-f]{2}){1," + MAX_HANDLE_CHARACTERS / 2 + "}");

        private Parser() {
        }

        private static WorkerMessage parse(byte[] json) throws MalformedException {
            JsonNode message;
            try {
                message = JSON.readTree(json);
            } catch (IOException e) {
                // The text of the exception would quote the worker's bytes.
                throw new MalformedException("a message must be JSON: bytes=" + json.length);
            }
            if (message == null || !message.isObject()) {
                throw new MalformedException("a message must be a JSON object: bytes=" + json.length);
            }
            String name = text(message, "type");
            WorkerMessageType type = WorkerMessageType.of(name);
            if (type == null) {
                throw new MalformedException("a message must have a known type: type=" + name);
            }
            return switch (type) {
                case READY -> ready(message);
                case JAILED -> jailed(message);
                case STATS -> new Stats(stats(message));
                case CARRIED -> carried(message);
                case LOST -> new Lost(number(message, "result"));
                case ENDED -> ended(message);
                case IMAGE -> new Image(digest(message), size(message));
                case STORED -> new Stored(message.path("sha256").asText().isEmpty() ? "" : digest(message));
                case WANT -> new Want(digest(message));
                case UNFIT -> new Unfit(digest(message));
                case SHARE -> share(message);
                case UNSHARE -> new Unshare(digits(message, "name", NAME));
                case RELEASE -> new Release(digits(message, "name", NAME));
                case FIND -> new Find(digits(message, "name", NAME));
                case SWAPPED_OUT -> new SwappedOut(bounded(message, "bytes"), bounded(message, "ms"),
                    optionalText(message, "stays"));
                case SWAPPED_IN -> new SwappedIn(bounded(message, "bytes"), bounded(message, "ms"),
                    optionalText(message, "problem"));
                case SWAP_WANTED -> new SwapWanted();
                case SWAP_MOVED -> new SwapMoved(bounded(message, "bytes"));
                case KEPT -> new Kept(bounded(message, "bytes"));
                case SWAP_FROZEN -> new SwapFrozen(optionalText(message, "stays"));
                case PROCESS_MOVED -> new ProcessMoved(number(message, "pid"), number(message, "result"),
                    processState(message), bounded(message, "ms"));
                case MOVE_READY -> new MoveReady(optionalText(message, "reason"), bounded(message, "bytes"),
                    flag(message, "socket"), stripes(message));
                case MOVED_IN -> new MovedIn(optionalText(message, "reason"), bounded(message, "ms"));
            };
        }

        private static int stripes(JsonNode message) throws MalformedException {
            long count = bounded(message, "stripes");
            if (count > RecordLayout.MAX_STRIPES) {
                throw new MalformedException("a session must have at most " + RecordLayout.MAX_STRIPES
                    + " further connections: stripes=" + count);
            }
            return (int) count;
        }

        private static Ready ready(JsonNode message) throws MalformedException {
            JsonNode list = message.path("devices");
            if (!list.isArray() || list.size() > MAX_DEVICES) {
                throw new MalformedException("devices must be a list of at most " + MAX_DEVICES);
            }
            List<Device> devices = new ArrayList<>();
            for (JsonNode device : list) {
                devices.add(new Device(text(device, "name"), optionalText(device, "uuid"), number(device, "totalBytes"),
                    optionalText(device, "pciBusId"), optionalText(device, "computeCapability")));
            }
            return new Ready(number(message, "pid"), text(message, "backend"), optionalText(message, "jail"),
                List.copyOf(devices));
        }

        private static Jailed jailed(JsonNode message) throws MalformedException {
            long listener = number(message, "listener");
            if (listener > MAX_DESCRIPTOR) {
                throw new MalformedException("a descriptor must be in 0.." + MAX_DESCRIPTOR + ": listener=" + listener);
            }
            return new Jailed((int) listener);
        }

        private static Carried carried(JsonNode message) throws MalformedException {
            String carrier = text(message, "carrier");
            if (!carrier.equals(Carrier.RDMA.label())) {
                throw new MalformedException("a session can change to rdma only: carrier=" + carrier);
            }
            return new Carried();
        }

        private static ProcessState processState(JsonNode message) throws MalformedException {
            long state = number(message, "state");
            if (state >= ProcessState.values().length) {
                throw new MalformedException("a process's state must be known: state=" + state);
            }
            return ProcessState.values()[(int) state];
        }

        private static Ended ended(JsonNode message) throws MalformedException {
            return new Ended(text(message, "reason"), flag(message, "error"));
        }

        private static WorkerStats stats(JsonNode message) throws MalformedException {
            return new WorkerStats(number(message, "calls"), number(message, "replies"), number(message, "roundTrips"),
                number(message, "bytesIn"), number(message, "bytesOut"), number(message, "refusedRecords"),
                0, number(message, "kernels"), number(message, "gpuTimeMs"), number(message, "waitedMs"));
        }

        private static Share share(JsonNode message) throws MalformedException {
            long column = number(message, "column");
            if (column >= LedgerLayout.MAX_COLUMNS) {
                throw new MalformedException("a ledger's column must be below " + LedgerLayout.MAX_COLUMNS + ": column="
                    + column);
            }
            return new Share(digits(message, "name", NAME), digits(message, "handle", HANDLE),
                number(message, "bytes"), (int) column, number(message, "chargedBytes"),
                flag(message, "passed"));
        }

        private static String digest(JsonNode message) throws MalformedException {
            return digits(message, "sha256", DIGEST);
        }

        private static String digits(JsonNode message, String field, Pattern pattern) throws MalformedException {
            String digits = message.path(field).isTextual() ? message.path(field).textValue() : "?";
            if (!pattern.matcher(digits).matches()) {
                throw new MalformedException("a field must be hexadecimal digits: field=" + field + " pattern="
                    + pattern);
            }
            return digits;
        }

        private static long size(JsonNode message) throws MalformedException {
            long bytes = number(message, "bytes");
            if (bytes < 1 || bytes > MAX_IMAGE_BYTES) {
                throw new MalformedException("an image must have 1.." + MAX_IMAGE_BYTES + " bytes: bytes=" + bytes);
            }
            return bytes;
        }

        private static long number(JsonNode object, String field) throws MalformedException {
            JsonNode value = object.path(field);
            if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < 0) {
                throw new MalformedException("a field must be a number of 0 or more: field=" + field);
            }
            return value.longValue();
        }

        /** A number whose sums stay in a long, whatever workers report. */
        private static long bounded(JsonNode object, String field) throws MalformedException {
            return Math.min(MAX_AMOUNT, number(object, field));
        }

        private static boolean flag(JsonNode object, String field) throws MalformedException {
            if (!object.path(field).isBoolean()) {
                throw new MalformedException("a field must be true or false: field=" + field);
            }
            return object.path(field).booleanValue();
        }

        private static String text(JsonNode object, String field) throws MalformedException {
            if (!object.path(field).isTextual()) {
                throw new MalformedException("a field must be a string: field=" + field);
            }
            return Printable.text(object.path(field).textValue(), MAX_TEXT_CHARACTERS);
        }

        private static String optionalText(JsonNode object, String field) throws MalformedException {
            JsonNode value = object.path(field);
            return value.isMissingNode() || value.isNull() ? "" : text(object, field);
        }
    }
}
