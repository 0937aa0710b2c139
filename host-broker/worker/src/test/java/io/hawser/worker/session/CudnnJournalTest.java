package io.hawser.worker.session;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cudnn.CudnnOpcodes;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.move.StateReader;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The calls of cuDNN that a session takes to another worker. */
@Timeout(60)
class CudnnJournalTest {
    private static final int GRAPH = cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
    private static final int PLAN = cudnnBackendDescriptorType_t.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    private static final int CONFIG = cudnnBackendDescriptorType_t.CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    private static final int DESCRIPTOR = cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR;

    /** Makes an object whose only attribute names these parts. */
    private static void make(Guest guest, long id, int kind, long... parts) throws IOException {
        MemorySegment content = Arena.ofAuto().allocate(parts.length == 0 ? 0 : 16 + parts.length * 8L, 8);
        if (parts.length > 0) {
            content.set(ValueLayout.JAVA_INT, 0, 801);
            content.set(ValueLayout.JAVA_INT, 4, DESCRIPTOR);
            content.set(ValueLayout.JAVA_LONG, 8, parts.length);
            MemorySegment.copy(MemorySegment.ofArray(parts), 0, content, 16, parts.length * 8L);
        }
        long request = guest.send(CudnnOpcodes.hwsDnnMake, Guest.REPLY, out -> {
            out.fixed(24);
            out.i64(0, id);
            out.i32(8, kind);
            out.i32(12, (int) content.byteSize());
            out.buffer(16, content);
        });
        assertEquals(0, guest.replyTo(request).status());
    }

    /** The opcodes of the calls behind the context's; the session goes on afterwards. */
    private static List<Integer> kept(Rig rig) throws IOException {
        int[] mover = Rig.socketPair();
        rig.tell("{\"type\":\"moveout\"}", mover[0]);
        JsonNode ready = rig.expect("moveready");
        assertEquals("", ready.path("reason").asText());
        int descriptor = rig.descriptors().receive();
        Descriptors.close(rig.descriptors().receive()); // the guest's socket
        try (StateReader in = StateReader.of(descriptor)) {
            return SessionState.read(in).calls().stream()
                .map(call -> call.record().get(ValueLayout.JAVA_INT_UNALIGNED, RecordLayout.OPCODE_OFFSET))
                .filter(opcode -> opcode != CudaOpcodes.hwsContextCreate).toList();
        } finally {
            Descriptors.close(descriptor);
            rig.tell("{\"type\":\"moveend\",\"moved\":false}", -1);
            Descriptors.close(mover[1]);
        }
    }

    @Test
    void shouldKeepACallAsLongAsAnObjectOfItExists() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long handle = guest.newId(HandleKind.CUDNN);
            assertEquals(0, guest.call(CudnnOpcodes.cudnnCreate, handle).status());
            make(guest, 1, GRAPH);
            make(guest, 2, PLAN, 1);
            make(guest, 3, GRAPH);
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 1); // the plan uses it
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 3);
            guest.call(Guest.CTX_SYNCHRONIZE);
            assertEquals(List.of(CudnnOpcodes.cudnnCreate, CudnnOpcodes.hwsDnnMake, CudnnOpcodes.hwsDnnMake,
                CudnnOpcodes.hwsDnnDrop), kept(rig));
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 2);
            guest.call(Guest.CTX_SYNCHRONIZE);
            assertEquals(List.of(CudnnOpcodes.cudnnCreate), kept(rig));
        }
    }

    @Test
    void shouldKeepAQuestionAsLongAsOneOfItsResultsExists() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            make(guest, 1, GRAPH);
            assertEquals(0, ask(guest, DESCRIPTOR, 2, 10, 0));
            assertEquals(0, ask(guest, cudnnBackendAttributeType_t.CUDNN_TYPE_INT64, 1, 0, 8));
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 10);
            guest.call(Guest.CTX_SYNCHRONIZE);
            assertEquals(List.of(CudnnOpcodes.hwsDnnMake, CudnnOpcodes.hwsDnnAsk, CudnnOpcodes.hwsDnnDrop), kept(rig));
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 11);
            guest.send(CudnnOpcodes.hwsDnnDrop, 0, 1);
            guest.call(Guest.CTX_SYNCHRONIZE);
            assertEquals(List.of(), kept(rig));
        }
    }

    private static int ask(Guest guest, int type, int requested, long firstId, int valueBytes) throws IOException {
        return guest.call(CudnnOpcodes.hwsDnnAsk, out -> {
            out.fixed(40);
            out.i64(0, 1);
            out.i32(8, 200);
            out.i32(12, type);
            out.i32(16, requested);
            out.i32(20, CONFIG);
            out.i64(24, firstId);
            out.i32(32, valueBytes);
        }).status();
    }
}
