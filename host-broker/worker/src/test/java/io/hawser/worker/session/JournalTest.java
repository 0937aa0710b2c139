package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.Move;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The journal has the calls of objects that exist, in their order, and nothing else. */
class JournalTest {
    private final Journal journal = new Journal();
    private final Handle context = handle(HandleKind.CONTEXT, 1, null);

    private static Handle handle(HandleKind kind, int number, Handle owner) {
        return new Handle(kind, HandleTable.id(kind, number), 1000 + number, owner, null);
    }

    /** A record whose payload is one number. */
    private static MemorySegment record(int number, int extraBytes) {
        MemorySegment record = MemorySegment.ofArray(new byte[RecordLayout.HEADER_BYTES + 8 + extraBytes]);
        record.set(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.HEADER_BYTES, number);
        return record;
    }

    private void keep(Move move, int number, Handle made, Handle changed) {
        MemorySegment record = record(number, 0);
        Journal.Entry entry = journal.draft(move, record, 0, (int) record.byteSize());
        record.fill((byte) -1); // the session's memory is used again
        journal.keep(entry, null, made, changed, "cuTest");
    }

    private List<Integer> numbers() {
        return journal.entries().stream()
            .map(entry -> entry.record().get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.HEADER_BYTES)).toList();
    }

    @Test
    void shouldForgetTheCallsOfAnObjectThatHasEnded() {
        Handle stream = handle(HandleKind.STREAM, 1, context);
        keep(Move.MAKE, 1, context, null);
        keep(Move.MAKE, 2, stream, null);
        keep(Move.SET, 3, null, stream);
        keep(Move.SET, 4, null, context);
        journal.forget(stream.id());
        assertEquals(List.of(1, 4), numbers());
        journal.forget(stream.id());
        journal.forget(context.id());
        assertEquals(List.of(), numbers());
    }

    @Test
    void shouldKeepTheLastOfEqualCalls() {
        keep(Move.SET, 1, null, context);
        keep(Move.SET, 2, null, context);
        keep(Move.SET, 1, null, context);
        assertEquals(List.of(2, 1), numbers());
        journal.forget(context.id());
        keep(Move.SET, 2, null, context);
        assertEquals(List.of(2), numbers());
    }

    @Test
    void shouldPinWithTheFirstReason() {
        keep(Move.MAKE, 1, context, null);
        assertEquals("", journal.pinned());
        keep(Move.PINS, 2, null, null);
        assertEquals("it has called cuTest", journal.pinned());
        assertEquals(List.of(), numbers());
        MemorySegment record = record(3, 0);
        assertNull(journal.draft(Move.SET, record, 0, (int) record.byteSize()), "no copies any more");
    }

    @Test
    void shouldPinBecauseOfAnObjectWithoutAHandle() {
        keep(Move.MAKE, 1, new Handle(HandleKind.STREAM, HandleTable.id(HandleKind.STREAM, 1), 0, context, null), null);
        assertTrue(journal.pinned().contains("could not be made"), journal.pinned());
    }

    @Test
    void shouldLeaveOtherKindsToTheirHandles() {
        Handle array = handle(HandleKind.ARRAY, 1, context);
        keep(Move.MAKE, 1, array, null);
        assertEquals(List.of(), numbers());
        assertEquals("", journal.pinned());
        HandleTable handles = new HandleTable();
        handles.add(context);
        assertEquals("", Journal.objection(handles));
        handles.add(array);
        assertEquals("it has an object that cannot move: array", Journal.objection(handles));
        handles.remove(array);
        handles.add(handle(HandleKind.CONTEXT, 2, context));
        assertEquals("it has an object that cannot move: green context", Journal.objection(handles));
    }

    @Test
    void shouldStayWithinItsLimit() {
        int length = 1 << 20;
        MemorySegment record = record(1, length - RecordLayout.HEADER_BYTES - 8);
        for (int i = 0; i <= Journal.MAX_BYTES / length; i++) {
            assertEquals("", journal.pinned());
            journal.keep(journal.draft(Move.MAKE, record, 0, length), null, handle(HandleKind.MODULE, i + 1, null),
                null, "cuTest");
        }
        assertTrue(journal.pinned().contains("too many calls"), journal.pinned());
        assertEquals(List.of(), numbers());
    }

    @Test
    void shouldKeepACallUntilItsNumberGoes() {
        MemorySegment record = record(1, 0);
        Journal.Entry entry = journal.draft(Move.SET, record, 0, (int) record.byteSize());
        entry.tieTo(-5);
        journal.keep(entry, null, null, context, "cuTest");
        journal.forget(context.id());
        assertEquals(List.of(1), numbers());
        journal.forget(-5);
        assertEquals(List.of(), numbers());
    }
}
