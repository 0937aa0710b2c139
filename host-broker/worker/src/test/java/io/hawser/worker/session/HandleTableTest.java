package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.HandleKind;
import java.util.List;
import org.junit.jupiter.api.Test;

class HandleTableTest {
    private final HandleTable table = new HandleTable();

    private Handle add(HandleKind kind, int number, Handle owner) {
        Handle handle = new Handle(kind, HandleTable.id(kind, number), 100 + number, owner, null);
        assertTrue(table.add(handle));
        return handle;
    }

    @Test
    void shouldTellDestroyedFromNeverCreated() {
        Handle stream = add(HandleKind.STREAM, 5, null);
        table.remove(stream);
        assertNull(table.find(HandleKind.STREAM, stream.id()));
        assertTrue(table.wasCreated(HandleKind.STREAM, stream.id()));
        assertFalse(table.wasCreated(HandleKind.STREAM, stream.id() + 1));
        assertFalse(table.wasCreated(HandleKind.EVENT, stream.id()), "an id of another kind");
        assertFalse(table.wasCreated(HandleKind.STREAM, HandleTable.id(HandleKind.STREAM, 0)));
    }

    @Test
    void shouldRefuseIdInUseOrOfAnotherKind() {
        Handle stream = add(HandleKind.STREAM, 1, null);
        assertFalse(table.add(stream));
        assertFalse(table.add(new Handle(HandleKind.EVENT, stream.id(), 7, null, null)));
        assertFalse(table.add(new Handle(HandleKind.EVENT, 1, 7, null, null)));
    }

    @Test
    void shouldBoundTheHandlesOfAKind() {
        for (int number = 1; number < HandleTable.MAX_HANDLES; number++) {
            add(HandleKind.EVENT, number, null);
        }
        Handle last = add(HandleKind.EVENT, HandleTable.MAX_HANDLES, null);
        Handle more = new Handle(HandleKind.EVENT, HandleTable.id(HandleKind.EVENT, HandleTable.MAX_HANDLES + 1), 7,
            null, null);
        assertFalse(table.add(more));
        assertFalse(table.wasCreated(HandleKind.EVENT, more.id()));
        add(HandleKind.STREAM, 1, null);
        table.remove(last);
        assertTrue(table.add(more));
    }

    @Test
    void shouldRemoveHandlesOwnedByContext() {
        Handle context = add(HandleKind.CONTEXT, 1, null);
        Handle other = add(HandleKind.CONTEXT, 2, null);
        Handle module = add(HandleKind.MODULE, 1, context);
        add(HandleKind.FUNCTION, 1, module);
        add(HandleKind.STREAM, 1, context);
        Handle kept = add(HandleKind.STREAM, 2, other);
        List<Handle> gone = table.remove(context);
        assertEquals(4, gone.size());
        assertEquals(2, table.size());
        assertEquals(kept, table.find(HandleKind.STREAM, kept.id()));
    }
}
