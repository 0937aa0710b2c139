package io.hawser.worker.session;

import io.hawser.cuda.backend.ManagedVariables;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.LinkPosition;
import io.hawser.worker.channel.RecordHeader;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.move.SessionStream;
import io.hawser.worker.move.StateReader;
import io.hawser.worker.swap.KeeperLink;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A session comes from another worker (moving.md). It makes all objects again, gets the contents of its slabs, and
 * serves its guest after the broker's commit. Until then the guest is the other worker's, and nothing is sent to it.
 * Session thread, except where a method says otherwise.
 */
public final class Arrival {
    private static final Logger LOG = System.getLogger(Arrival.class.getName());
    /** Offset of a staged image's number in the payload of hwsImageLoad, which the description fixes. */
    private static final int BLOB_ID_OFFSET = 8;

    private final StateReader memory;
    private final SessionState state;
    private final ArrivingSlabs slabs;
    private final Consumer<WorkerMessage> broker;
    private final boolean isFromAfar; // the guest has a new connection, and the other worker another clock
    private final long beganNs = System.nanoTime();
    private final Deque<SessionState.Kept> calls;
    private Session session;
    private int joined; // further connections that have come
    private boolean isStepping;
    private boolean isReady;
    private boolean hasContents;
    private boolean isServing;
    private boolean hasFailed;

    private Arrival(StateReader memory, ArrivingSlabs slabs, Consumer<WorkerMessage> broker, boolean isFromAfar)
        throws IOException {
        this.memory = memory;
        state = SessionState.read(memory);
        this.slabs = slabs;
        this.broker = broker;
        this.isFromAfar = isFromAfar;
        calls = new ArrayDeque<>(state.calls());
    }

    /**
     * Reads the state of a session that comes from a worker of the same broker. Any thread, before the session.
     *
     * @param descriptor of the state; the caller closes it.
     * @param mover the way to the mover, closed by this.
     * @param broker gets the outcome.
     * @throws IOException if the state cannot be read.
     */
    public static Arrival fromHere(int descriptor, KeeperLink mover, Consumer<WorkerMessage> broker)
        throws IOException {
        return new Arrival(StateReader.of(descriptor), new SlabsFromMover(mover), broker, false);
    }

    /**
     * Waits for the state of a session that comes from a worker of another broker. Any thread, before the session.
     *
     * @param stream the connection from that worker, closed by this.
     * @param broker gets the outcome.
     * @throws IOException if the state does not come, or cannot be read.
     */
    public static Arrival fromAfar(SessionStream stream, Consumer<WorkerMessage> broker) throws IOException {
        return new Arrival(stream.receiveState(), new SlabsFromStream(stream), broker, true);
    }

    /** Where the other worker's link has stopped. Any thread. */
    public LinkPosition position() {
        return state.position();
    }

    /** Whether the guest is still the other worker's. */
    boolean isAway() {
        return !isServing;
    }

    /** Makes the session. Its dispatcher is known. */
    void begin(Session to) {
        session = to;
        try {
            if (!session.credit().resume(state.credit()[0], state.credit()[1], state.credit()[2])) {
                throw new IOException("a credit window must be possible");
            }
            session.order().pause(() -> {});
            session.order().freeze(true);
            if (state.follows()) {
                session.moving().follow();
            }
            for (SessionState.Window window : state.windows()) {
                int result = session.objects().arena().reserve(window.device(), window.range().address(),
                    window.range().bytes());
                SessionState.require(result, "the addresses of its memory are not free in the other worker");
            }
        } catch (IOException e) {
            fail(e.getMessage());
            return;
        }
        step();
    }

    /** Takes a further connection, which the other worker serves until the broker's commit. */
    void join(int descriptor) {
        if (isStopped() || joined == state.stripes().size()) {
            Descriptors.close(descriptor);
            fail("a session must bring only the connections of its state");
        } else if (session.moving().stripes().add(descriptor, state.stripes().get(joined++))) {
            complete();
        } else {
            fail("no memory for a further connection");
        }
    }

    /** Makes the next calls again, as long as each ends at once. */
    private void step() {
        if (isStepping) {
            return; // the loop below goes on
        }
        isStepping = true;
        int before = calls.size() + 1;
        while (calls.size() < before && !calls.isEmpty() && !isStopped()) {
            before = calls.size();
            repeat(calls.peek());
        }
        isStepping = false;
        if (calls.isEmpty() && !isStopped() && !isReady) {
            finish();
        }
    }

    /** Makes a call again; its end, perhaps a later one, removes it from the rest. */
    private void repeat(SessionState.Kept kept) {
        MemorySegment record = aligned(kept.record());
        RecordHeader header = new RecordHeader();
        if (record.byteSize() < RecordLayout.HEADER_BYTES) {
            fail("a call of the journal must be a record");
            return;
        }
        header.read(record, 0);
        if (header.lengthBytes() != record.byteSize() || !session.dispatcher().isKnown(header.opcode())) {
            fail("a call of the journal must be a record of the description");
            return;
        }
        if (session.objects().handles().find(HandleKind.CONTEXT,
            HandleTable.id(HandleKind.CONTEXT, header.context())) == null) {
            // Code that belongs to no context outlives the one in which it was loaded.
            record.set(ValueLayout.JAVA_INT, RecordLayout.CONTEXT_OFFSET, 0);
            header.read(record, 0);
        }
        if (!kept.image().isEmpty()) {
            if (!stage(kept.image(), record)) {
                fail("the code of a module must be in the state");
                return;
            }
            session.backend().variablePlaces().expect(state.variablesOf(record.get(ValueLayout.JAVA_LONG,
                RecordLayout.HEADER_BYTES)));
        }
        session.moving().restate(record, header, (call, result) -> {
            calls.remove();
            String name = session.dispatcher().name(header.opcode());
            if (result != 0) {
                fail("a call fails in the other worker: " + name + " result=" + result);
            } else if (kept.reply() != null && !isEqual(kept.reply(), call.outputs())) {
                fail("a result is different in the other worker: " + name);
            }
            if (!isStepping) {
                step(); // the call was deferred
            }
        });
    }

    private static MemorySegment aligned(MemorySegment record) {
        return Arena.ofAuto().allocate(Math.max(1, record.byteSize()), RecordLayout.ALIGNMENT_BYTES)
            .asSlice(0, record.byteSize()).copyFrom(record);
    }

    private static boolean isEqual(MemorySegment expected, MemorySegment found) {
        return expected.byteSize() == found.byteSize() && expected.mismatch(found) < 0;
    }

    /** Puts an image where its call expects it. */
    private boolean stage(String digest, MemorySegment record) {
        MemorySegment image = state.images().get(digest);
        long at = RecordLayout.HEADER_BYTES + (long) BLOB_ID_OFFSET;
        if (image == null || image.byteSize() == 0 || record.byteSize() < at + Long.BYTES) {
            return false;
        }
        long blobId = record.get(ValueLayout.JAVA_LONG, at);
        BlobStore blobs = session.objects().blobs();
        BlobStore.Outcome staged = blobs.stage(blobId, image.byteSize(), HexFormat.of().parseHex(digest));
        return staged == BlobStore.Outcome.KNOWN
            || staged == BlobStore.Outcome.OK && blobs.append(blobId, 0, image) == BlobStore.Outcome.OK;
    }

    /** All objects exist: the rest of the state. */
    private void finish() {
        isReady = true;
        long objectsMs = elapsedMs();
        try {
            writeVariables();
            session.backend().variablePlaces().end();
            restoreEvents();
            session.objects().handles().setHighest(state.highest());
            session.turns().copies().interrupt(state.part()[0], state.part()[1]);
            session.deferError(state.error());
            for (SessionState.Window window : state.windows()) {
                map(window);
            }
        } catch (IOException e) {
            fail(e.getMessage());
            return;
        }
        LOG.log(Level.INFO, "a session is restated: calls={0} objectsMs={1} variables={2} allMs={3}",
            state.calls().size(), objectsMs, state.variables().size(), elapsedMs());
        slabs.fetch(session, problem -> {
            if (problem.isEmpty()) {
                hasContents = true;
                complete();
            } else {
                fail(problem);
            }
        });
    }

    private void writeVariables() throws IOException {
        Map<Long, Map<Long, Long>> known = new HashMap<>(); // lengths by address by native module, of one context
        long current = 0;
        for (SessionState.Variable variable : state.variables()) {
            Handle context = session.objects().handles().find(HandleKind.CONTEXT, variable.context());
            Handle module = session.objects().handles().find(HandleKind.MODULE, variable.module());
            if (context == null || context.isFailed() || module == null || module.isFailed()) {
                throw new IOException("a variable must belong to a module");
            }
            SessionState.require(session.objects().enter(context), "a context cannot be entered");
            if (current != context.id()) {
                known.clear();
                current = context.id();
            }
            Map<Long, Long> here = known.get(module.nativeHandle());
            if (here == null) {
                here = variables(module);
                known.put(module.nativeHandle(), here);
            }
            Long bytes = here.get(variable.address());
            if (bytes == null) {
                throw new IOException("a variable of its device code has another address in the other worker");
            } else if (bytes != variable.content().byteSize()) {
                throw new IOException("a variable of its device code has another length in the other worker");
            }
            SessionState.write(session.backend(), variable.address(), variable.content());
        }
    }

    /** Lengths of a module's variables in the current context, by address. */
    private Map<Long, Long> variables(Handle module) throws IOException {
        List<ManagedVariables.Variable> all = session.backend().variables(module.nativeHandle());
        if (all == null) {
            throw new IOException("the driver does not tell the variables of its device code");
        }
        Map<Long, Long> lengths = new HashMap<>();
        all.forEach(variable -> lengths.put(variable.address(), variable.bytes()));
        return lengths;
    }

    private void restoreEvents() throws IOException {
        Map<Long, Double> times = new HashMap<>(); // by native event
        Handle owner = null;
        for (Map.Entry<Long, Double> time : state.events().entrySet()) {
            Handle event = session.objects().handles().find(HandleKind.EVENT, time.getKey());
            if (event == null || event.isFailed()) {
                throw new IOException("an event with a time must exist");
            }
            owner = event.owner();
            times.put(event.nativeHandle(), time.getValue());
        }
        if (!times.isEmpty()) {
            SessionState.require(owner == null ? 0 : session.objects().enter(owner), "a context cannot be entered");
            SessionState.require(
                session.moving().events().arrive(session.backend().driver(), times,
                    isFromAfar ? System.nanoTime() - beganNs : System.nanoTime() - state.sinceNs()),
                "the times of events cannot be kept");
        }
    }

    private void map(SessionState.Window window) throws IOException {
        DeviceArena arena = session.objects().arena();
        for (SessionState.Range slab : window.slabs()) {
            SessionState.require(arena.map(window.device(), slab.address(), slab.bytes()),
                "a slab cannot be made in the other worker");
        }
        for (SessionState.Range block : window.blocks()) {
            SessionState.require(arena.allocated(window.device(), block.address(), block.bytes()),
                "a block cannot be made in the other worker");
        }
    }

    /** Reports the session as complete when nothing is missing. */
    private void complete() {
        if (hasContents && joined == state.stripes().size() && !isStopped()) {
            // First to this broker: the other one may commit as soon as it knows.
            broker.accept(new WorkerMessage.MovedIn("", elapsedMs()));
            slabs.end("");
        }
    }

    private long elapsedMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - beganNs);
    }

    private boolean isStopped() {
        return hasFailed || session.isOver();
    }

    private void fail(String reason) {
        if (!isStopped()) {
            hasFailed = true;
            slabs.end(reason);
            broker.accept(new WorkerMessage.MovedIn(reason, elapsedMs()));
        }
    }

    /** The broker's commit: the guest is this worker's. */
    void serve() {
        if (isStopped() || isServing) {
            return;
        }
        isServing = true;
        state.held().forEach(record -> session.order().hold(aligned(record)));
        session.order().resume();
        if (isFromAfar) {
            session.outbox().resumed();
            session.outbox().flush();
        }
        session.link().open(session, state.position());
        session.moving().stripes().start();
        memory.close();
    }
}
