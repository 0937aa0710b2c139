package io.hawser.worker.session;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.ManagedVariables;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.CudaDriver;
import io.hawser.cuda.generated.Description;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.channel.LinkPosition;
import io.hawser.worker.channel.tcp.StripeState;
import io.hawser.worker.move.StateReader;
import io.hawser.worker.move.StateWriter;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The parts of a session that has stopped (moving.md). They are its link's position and credit, its windows and slabs,
 * and its journal with the images. Its variables, the times of its events, and the records that wait follow.
 *
 * @param position where its link has stopped.
 * @param credit bytes received, released and reported.
 * @param error the deferred error; 0 for none.
 * @param part sequence and bytes of a copy that has been issued in part; 0 for none.
 * @param highest see {@link HandleTable#highest}.
 * @param windows of its arena.
 * @param images by digest.
 * @param calls of its journal.
 * @param variables of its modules.
 * @param sinceNs System.nanoTime() of the departure.
 * @param events ms from the last record of each event to the departure, by the guest's id.
 * @param held records that wait.
 * @param stripes its further connections.
 * @param follows whether the guest can follow to another broker.
 */
record SessionState(LinkPosition position, long[] credit, int error, long[] part, long[] highest, List<Window> windows,
    Map<String, MemorySegment> images, List<Kept> calls, List<Variable> variables, long sinceNs,
    Map<Long, Double> events, List<MemorySegment> held, List<StripeState> stripes, boolean follows) {

    private static final long MAGIC = 0x3145564f4d535748L; // "HWSMOVE1"
    private static final int DIGEST_CHARACTERS = 64;
    /** Contents of variables of all modules. */
    private static final long MAX_VARIABLE_BYTES = 256L << 20;
    private static final long PIECE_BYTES = 1L << 20;

    /** A range of addresses. */
    record Range(long address, long bytes) {}

    /** A window with its slabs, and the blocks that are open where they are reported. */
    record Window(int device, Range range, List<Range> slabs, List<Range> blocks) {}

    /** A call of the journal; no reply is null, and an empty image is none. */
    record Kept(MemorySegment record, MemorySegment reply, String image) {}

    /** A variable of a module in a context, by the guest's ids. */
    record Variable(long module, long context, long address, MemorySegment content) {}

    /** Places of a module's variables; none when they lie in several contexts. */
    List<ManagedVariables.Variable> variablesOf(long module) {
        List<Variable> its = variables.stream().filter(variable -> variable.module == module).toList();
        boolean isOne = its.stream().map(Variable::context).distinct().count() <= 1;
        return isOne ? its.stream().map(variable -> new ManagedVariables.Variable(variable.address,
            variable.content.byteSize())).toList() : List.of();
    }

    /**
     * Writes the state of a session that has stopped.
     *
     * @param stripes the further connections that come along.
     * @throws IOException if a part of it cannot be known; the message is for the operator.
     */
    static void write(Session session, List<StripeState> stripes, StateWriter out) throws IOException {
        out.i64(MAGIC);
        out.i64(Description.HASH);
        long heldCredit = session.order().held().stream().filter(HeldRecords.Held::isCredited)
            .mapToLong(HeldRecords.Held::lengthBytes).sum();
        writePosition(session, heldCredit, out);
        out.i32(session.keptError());
        out.i64(session.turns().copies().partOf());
        out.i64(session.turns().copies().issuedOf(session.turns().copies().partOf()));
        long[] highest = session.objects().handles().highest();
        out.i32(highest.length);
        for (long number : highest) {
            out.i64(number);
        }
        Collection<ArenaWindow> windows = session.objects().arena().windows();
        out.i32(windows.size());
        windows.forEach(window -> write(window, out));
        Collection<Journal.Entry> calls = session.moving().journal().entries();
        writeImages(session, calls, out);
        out.i32(calls.size());
        for (Journal.Entry call : calls) {
            out.bytes(call.record());
            out.i32(call.reply() == null ? 0 : 1);
            if (call.reply() != null) {
                out.bytes(call.reply());
            }
            text(out, call.image() == null ? "" : call.image());
        }
        writeVariables(session, out);
        writeEvents(session, out);
        List<HeldRecords.Held> held = session.order().held();
        out.i32(held.size());
        held.forEach(record -> out.bytes(record.bytes().asSlice(0, record.lengthBytes())));
        out.i32(stripes.size());
        for (StripeState stripe : stripes) {
            out.i32(stripe.isReading() ? 1 : 0);
            out.i32(stripe.chunks().size());
            stripe.chunks().forEach(out::bytes);
        }
        out.i32(session.moving().follows() ? 1 : 0);
    }

    private static void writePosition(Session session, long heldCredit, StateWriter out) {
        LinkPosition position = session.link().position();
        out.i64(position.sequence());
        out.bytes(position.partial());
        out.i64(position.commandPosition());
        out.i64(position.replyPosition());
        out.i64(position.replyHead());
        // The work of all served records has ended, so only these records hold credit. The target charges the partial
        // one again.
        long received = session.credit().receivedBytes() - position.partialCredit();
        out.i64(received);
        out.i64(received - heldCredit);
        out.i64(session.credit().reportedBytes());
    }

    private static void write(ArenaWindow window, StateWriter out) {
        out.i32(window.device);
        out.i64(window.address);
        out.i64(window.bytes);
        for (Map<Long, Long> ranges : List.of(window.slabs, window.blocks)) {
            out.i32(ranges.size());
            ranges.forEach((address, bytes) -> {
                out.i64(address);
                out.i64(bytes);
            });
        }
    }

    private static void writeImages(Session session, Collection<Journal.Entry> calls, StateWriter out)
        throws IOException {
        Set<String> digests = new LinkedHashSet<>();
        calls.stream().filter(call -> call.image() != null).forEach(call -> digests.add(call.image()));
        out.i32(digests.size());
        for (String digest : digests) {
            MemorySegment image = session.objects().blobs().pin(digest);
            if (image == null) {
                throw new IOException("the worker no longer has its device code");
            }
            text(out, digest);
            out.bytes(image);
            session.objects().blobs().unpin(digest);
        }
    }

    private static void text(StateWriter out, String text) {
        out.bytes(MemorySegment.ofArray(text.getBytes(StandardCharsets.US_ASCII)));
    }

    private static void writeVariables(Session session, StateWriter out) throws IOException {
        List<Variable> all = new ArrayList<>();
        long bytes = 0;
        for (Handle context : session.objects().handles().all(HandleKind.CONTEXT)) {
            for (Handle module : session.objects().handles().all(HandleKind.MODULE)) {
                if (context.isFailed() || module.owner() != null && module.owner() != context) {
                    continue;
                }
                require(session.objects().enter(context), "a context cannot be entered");
                if (session.backend().kernelHeapBytes() != 0) {
                    throw new IOException("its kernels may have allocated memory");
                } else if (!session.backend().managedVariables().of(module.nativeHandle()).isEmpty()) {
                    throw new IOException("its device code has managed variables");
                }
                List<ManagedVariables.Variable> here = session.backend().variables(module.nativeHandle());
                if (here == null) {
                    throw new IOException("the driver does not tell the variables of its device code");
                }
                for (ManagedVariables.Variable variable : here) {
                    bytes += variable.bytes();
                    if (bytes > MAX_VARIABLE_BYTES) {
                        throw new IOException("the variables of its device code are too long: maxBytes="
                            + MAX_VARIABLE_BYTES);
                    }
                    all.add(new Variable(module.id(), context.id(), variable.address(),
                        read(session.backend(), variable.address(), variable.bytes())));
                }
            }
        }
        out.i32(all.size());
        for (Variable variable : all) {
            out.i64(variable.module);
            out.i64(variable.context);
            out.i64(variable.address);
            out.bytes(variable.content);
        }
    }

    /** Reads device memory of the current context; no work runs. */
    private static MemorySegment read(GpuBackend backend, long address, long bytes) throws IOException {
        MemorySegment content = Arena.ofAuto().allocate(bytes, Long.BYTES);
        copy(backend, bytes, (staging, offset, length) -> {
            require(backend.copyDtoH(staging, address + offset, 0), "a variable cannot be read");
            require(await(backend.driver()), "a variable cannot be read");
            MemorySegment.copy(staging, 0, content, offset, length);
        });
        return content;
    }

    /** Writes device memory of the current context. */
    static void write(GpuBackend backend, long address, MemorySegment content) throws IOException {
        copy(backend, content.byteSize(), (staging, offset, length) -> {
            MemorySegment.copy(content, offset, staging, 0, length);
            require(backend.copyHtoD(address + offset, staging, 0), "a variable cannot be written");
            require(await(backend.driver()), "a variable cannot be written");
        });
    }

    private interface Copy {
        void piece(MemorySegment staging, long offset, long length) throws IOException;
    }

    private static void copy(GpuBackend backend, long bytes, Copy copy) throws IOException {
        MemorySegment staging = backend.allocateStaging(Math.min(bytes, PIECE_BYTES));
        if (staging == null) {
            throw new IOException("no memory for the variables of its device code");
        }
        try {
            for (long at = 0; at < bytes; at += PIECE_BYTES) {
                long length = Math.min(PIECE_BYTES, bytes - at);
                copy.piece(staging.asSlice(0, length), at, length);
            }
        } finally {
            backend.freeStaging(staging);
        }
    }

    /** Waits for a short copy in the current context's default stream; nothing else runs. Returns a CUresult. */
    static int await(CudaDriver driver) {
        int result = driver.cuStreamQuery(0);
        while (result == CUresult.CUDA_ERROR_NOT_READY) {
            Thread.onSpinWait();
            result = driver.cuStreamQuery(0);
        }
        return result;
    }

    static void require(int result, String problem) throws IOException {
        if (result != 0) {
            throw new IOException(problem + ": CUresult=" + result);
        }
    }

    private static void writeEvents(Session session, StateWriter out) throws IOException {
        Map<Long, Double> times = new LinkedHashMap<>();
        List<Handle> events = session.objects().handles().all(HandleKind.EVENT);
        CudaDriver driver = session.backend().driver();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment base = arena.allocate(Long.BYTES, Long.BYTES);
            MemorySegment ms = arena.allocate(Float.BYTES, Float.BYTES);
            if (!events.isEmpty()) {
                Handle owner = events.getFirst().owner();
                require(owner == null ? 0 : session.objects().enter(owner), "a context cannot be entered");
                require(driver.cuEventCreate(base, 0), "no event for the times of others");
            }
            long event = base.get(ValueLayout.JAVA_LONG, 0);
            if (event != 0) {
                require(driver.cuEventRecordWithFlags(event, 0, 0), "no event for the times of others");
                require(await(driver), "no event for the times of others");
            }
            for (Handle handle : events) {
                long here = handle.nativeHandle();
                int result = session.moving().events().has(here)
                    ? session.moving().events().elapsed(driver, here, event, ms)
                    : driver.cuEventElapsedTime_v2(ms, here, event);
                if (result == 0) { // others were never recorded, or without a time
                    times.put(handle.id(), (double) ms.get(ValueLayout.JAVA_FLOAT, 0));
                }
            }
            if (event != 0) {
                require(driver.cuEventDestroy_v2(event), "no event for the times of others");
            }
        }
        out.i64(System.nanoTime());
        out.i32(times.size());
        times.forEach((id, ms) -> {
            out.i64(id);
            out.i64(Double.doubleToRawLongBits(ms));
        });
    }

    /**
     * Reads a state.
     *
     * @throws IOException if no worker of this build writes it.
     */
    static SessionState read(StateReader in) throws IOException {
        in.expect(MAGIC, "the form of a state");
        in.expect(Description.HASH, "the description of the API");
        long sequence = in.i64();
        LinkPosition position = new LinkPosition(sequence, in.bytes(), 0, in.i64(), in.i64(), in.i64());
        long[] credit = {in.i64(), in.i64(), in.i64()};
        int error = in.i32();
        long[] part = {in.i64(), in.i64()};
        long[] highest = new long[in.count(Long.BYTES)];
        for (int i = 0; i < highest.length; i++) {
            highest[i] = in.i64();
        }
        if (highest.length != HandleKind.values().length) {
            throw new IOException("a state must have all kinds of handles: kinds=" + highest.length);
        }
        List<Window> windows = new ArrayList<>();
        for (int i = in.count(Long.BYTES); i > 0; i--) {
            windows.add(new Window(in.i32(), new Range(in.i64(), in.i64()), ranges(in), ranges(in)));
        }
        Map<String, MemorySegment> images = new HashMap<>();
        for (int i = in.count(DIGEST_CHARACTERS); i > 0; i--) {
            images.put(digest(in), in.bytes());
        }
        List<Kept> calls = new ArrayList<>();
        for (int i = in.count(Long.BYTES); i > 0; i--) {
            calls.add(new Kept(in.bytes(), in.i32() == 0 ? null : in.bytes(), digest(in)));
        }
        List<Variable> variables = new ArrayList<>();
        for (int i = in.count(Long.BYTES); i > 0; i--) {
            variables.add(new Variable(in.i64(), in.i64(), in.i64(), in.bytes()));
        }
        long sinceNs = in.i64();
        Map<Long, Double> events = new LinkedHashMap<>();
        for (int i = in.count(2 * Long.BYTES); i > 0; i--) {
            events.put(in.i64(), Double.longBitsToDouble(in.i64()));
        }
        List<MemorySegment> held = new ArrayList<>();
        for (int i = in.count(Long.BYTES); i > 0; i--) {
            held.add(in.bytes());
        }
        List<StripeState> stripes = stripes(in);
        boolean follows = in.i32() != 0;
        in.end();
        return new SessionState(position, credit, error, part, highest, windows, images, calls, variables, sinceNs,
            events, held, stripes, follows);
    }

    private static List<StripeState> stripes(StateReader in) throws IOException {
        List<StripeState> stripes = new ArrayList<>();
        for (int i = in.count(Long.BYTES); i > 0; i--) {
            boolean isReading = in.i32() != 0;
            List<MemorySegment> chunks = new ArrayList<>();
            for (int chunk = in.count(Integer.BYTES); chunk > 0; chunk--) {
                chunks.add(in.bytes());
            }
            StripeState stripe = new StripeState(isReading, chunks);
            stripe.requireValid();
            stripes.add(stripe);
        }
        return stripes;
    }

    private static List<Range> ranges(StateReader in) throws IOException {
        List<Range> ranges = new ArrayList<>();
        for (int i = in.count(2 * Long.BYTES); i > 0; i--) {
            ranges.add(new Range(in.i64(), in.i64()));
        }
        return ranges;
    }

    private static String digest(StateReader in) throws IOException {
        String digest = new String(in.bytes().toArray(ValueLayout.JAVA_BYTE),
            StandardCharsets.US_ASCII);
        if (!digest.isEmpty() && !digest.matches("[0-9a-f]{64}")) {
            throw new IOException("an image must be named by its digest");
        }
        return digest;
    }
}
