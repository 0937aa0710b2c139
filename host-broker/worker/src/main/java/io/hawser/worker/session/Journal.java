package io.hawser.worker.session;

import io.hawser.cuda.Move;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import io.netty.util.collection.LongObjectHashMap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Copies of the calls that made or changed the objects that exist now, with their replies, in their order. Another
 * worker makes the same objects from them (moving.md). Session thread.
 */
public final class Journal {
    /** Bytes of all copies. A session with more cannot move; this stops a guest that would fill the worker's memory. */
    static final long MAX_BYTES = 64L << 20;
    /** Longest record that lies on the JVM's heap: most records live no longer than an event or a stream. */
    private static final int SHORT_BYTES = 4096;
    /** Kinds of objects that a journal makes again. A session with an object of another kind cannot move. */
    private static final Set<HandleKind> KINDS = Collections.unmodifiableSet(EnumSet.of(HandleKind.CONTEXT,
        HandleKind.MODULE, HandleKind.FUNCTION, HandleKind.STREAM, HandleKind.EVENT, HandleKind.MEMORY_POOL,
        HandleKind.CUBLAS, HandleKind.CUBLASLT, HandleKind.CUFFT, HandleKind.CUDNN));

    private final Set<Entry> entries = new LinkedHashSet<>();
    private final LongObjectHashMap<List<Entry>> byObject = new LongObjectHashMap<>();
    private final Map<ByteBuffer, Entry> changes = new HashMap<>(); // by opcode, context and payload
    private long bytes;
    private String pin = "";

    /** A call in service, or a kept one. Compared by identity. */
    static final class Entry {
        private final Move move;
        private final MemorySegment record;
        private MemorySegment reply; // payload; null when the guest did not wait
        private String image; // digest of the staged image that the call has used up; null for none
        private long object; // the entry ends with it; 0: with the session

        private Entry(Move move, MemorySegment record) {
            this.move = move;
            this.record = record;
        }

        /** Notes the staged image that the call uses up. */
        void useImage(String digest) {
            image = digest;
        }

        /** Keeps the entry until {@link Journal#forget} gets this number, which is no handle's. */
        void tieTo(long number) {
            object = number;
        }

        /** The whole record. */
        MemorySegment record() {
            return record;
        }

        /** The reply without its header; null for none. */
        MemorySegment reply() {
            return reply;
        }

        /** Digest of the image that the call loads from the store; null for none. */
        String image() {
            return image;
        }

        private long bytes() {
            return record.byteSize() + (reply == null ? 0 : reply.byteSize());
        }

        private ByteBuffer content() {
            byte[] all = record.toArray(ValueLayout.JAVA_BYTE);
            int payload = RecordLayout.HEADER_BYTES;
            return ByteBuffer.allocate(2 * Integer.BYTES + all.length - payload)
                .put(all, RecordLayout.OPCODE_OFFSET, Integer.BYTES)
                .put(all, RecordLayout.CONTEXT_OFFSET, Integer.BYTES).put(all, payload, all.length - payload).flip();
        }
    }

    /**
     * Copies a record before its call, which may change or give back the memory.
     *
     * @param move what the call means; not NONE.
     * @param memory holds the record.
     * @return the entry for {@link #keep}, if the call succeeds; null when no copy is needed.
     */
    Entry draft(Move move, MemorySegment memory, long offset, int lengthBytes) {
        if (!pin.isEmpty()) {
            return null;
        }
        MemorySegment record = move == Move.PINS ? MemorySegment.NULL : copy(memory.asSlice(offset, lengthBytes));
        return new Entry(move, record);
    }

    private static MemorySegment copy(MemorySegment from) {
        MemorySegment to = from.byteSize() <= SHORT_BYTES
            ? MemorySegment.ofArray(new byte[Math.toIntExact(from.byteSize())])
            : Arena.ofAuto().allocate(from.byteSize(), RecordLayout.ALIGNMENT_BYTES);
        return to.copyFrom(from);
    }

    /**
     * Keeps the entry of a call that has succeeded.
     *
     * @param reply its payload; null when the guest did not wait.
     * @param made the object that it has made; null for none.
     * @param changed the object that it has changed; null for one that never ends.
     */
    void keep(Entry entry, MemorySegment reply, Handle made, Handle changed, String name) {
        if (entry.move == Move.PINS) {
            pin("it has called " + name);
        } else if (entry.move == Move.MAKE && made != null && made.isFailed()) {
            pin("an object could not be made: " + name);
        }
        if (!pin.isEmpty() || entry.move == Move.MAKE && (made == null || !KINDS.contains(made.kind()))) {
            return; // an object of another kind holds the session as long as it exists
        }
        entry.reply = reply == null ? null : copy(reply);
        Handle object = entry.move == Move.MAKE ? made : changed;
        if (entry.object == 0 && object != null) {
            entry.object = object.id();
        }
        if (entry.move == Move.SET) {
            Entry before = changes.put(entry.content(), entry);
            if (before != null) {
                remove(before);
                forgetIn(before);
            }
        }
        entries.add(entry);
        byObject.computeIfAbsent(entry.object, id -> new ArrayList<>(1)).add(entry);
        bytes += entry.bytes();
        if (bytes > MAX_BYTES) {
            pin("its objects took too many calls: bytes=" + bytes + " maxBytes=" + MAX_BYTES);
        }
    }

    private void remove(Entry entry) {
        if (entries.remove(entry)) {
            bytes -= entry.bytes();
        }
    }

    private void forgetIn(Entry entry) {
        List<Entry> its = byObject.get(entry.object);
        if (its != null) {
            its.remove(entry);
        }
    }

    /**
     * Forgets the calls of an object that has ended.
     *
     * @param object id of its handle, or a number of {@link Entry#tieTo}.
     */
    public void forget(long object) {
        List<Entry> its = byObject.remove(object);
        if (its == null) {
            return;
        }
        for (Entry entry : its) {
            remove(entry);
            if (entry.move == Move.SET) {
                changes.remove(entry.content(), entry);
            }
        }
    }

    private void pin(String reason) {
        if (pin.isEmpty()) {
            pin = reason;
            entries.clear();
            byObject.clear();
            changes.clear();
            bytes = 0;
        }
    }

    /** Why the session cannot move, because of an earlier call; empty if it can. */
    String pinned() {
        return pin;
    }

    /** Why the session cannot move, because of an object that it has now; empty if it can. */
    static String objection(HandleTable handles) {
        for (HandleKind kind : HandleKind.values()) {
            for (Handle handle : handles.all(kind)) {
                if (!KINDS.contains(kind) || handle.isGreen()) {
                    return "it has an object that cannot move: " + (handle.isGreen() ? "green context"
                        : kind.name().toLowerCase(Locale.ROOT).replace('_', ' '));
                }
            }
        }
        return "";
    }

    /** The kept calls, in their order. */
    Collection<Entry> entries() {
        return Collections.unmodifiableSet(entries);
    }
}
