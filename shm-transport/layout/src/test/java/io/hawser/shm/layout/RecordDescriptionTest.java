package io.hawser.shm.layout;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.layout.RecordDescription.Constant;
import io.hawser.shm.layout.RecordDescription.Control;
import io.hawser.shm.layout.RecordDescription.HeaderField;
import java.util.List;
import org.junit.jupiter.api.Test;

class RecordDescriptionTest {
    @Test
    void shouldLeaveNoGapInHeader() throws Exception {
        int at = 0;
        for (HeaderField field : RecordDescription.load().header()) {
            assertEquals(at, field.offset(), field.name());
            at += field.sizeBytes();
        }
        assertEquals(32, at);
    }

    @Test
    void shouldPlaceFieldsAtTheirNaturalAlignment() throws Exception {
        Control hello = control("HELLO");
        assertEquals(List.of(0, 4, 8, 16, 32, 36, 40), hello.payload().stream().map(f -> f.offset()).toList());
        assertEquals(48, hello.fixedBytes());
        assertEquals(24, control("STAGE_DATA").fixedBytes());
    }

    @Test
    void shouldNumberControlRecordsWithoutRepetition() throws Exception {
        List<Control> controls = RecordDescription.load().controls();
        assertEquals(controls.size(), controls.stream().mapToInt(Control::number).distinct().count());
    }

    @Test
    void shouldGiveBothLanguagesTheSameNumbers() throws Exception {
        RecordDescription record = RecordDescription.load();
        String c = new CLayoutEmitter().emit(record);
        String java = new JavaLayoutEmitter().emit(record);
        for (Constant constant : record.constants()) {
            boolean wide = constant.value() > Integer.MAX_VALUE;
            String value = wide ? "0x" + Long.toHexString(constant.value()) : Long.toString(constant.value());
            assertTrue(c.contains("#define HWS_" + constant.name() + " " + value), constant.name());
            assertTrue(java.contains("int " + constant.name() + " = " + value + ";"), constant.name());
        }
    }

    private static Control control(String name) throws Exception {
        return RecordDescription.load().controls().stream()
            .filter(c -> c.name().equals(name)).findFirst().orElseThrow();
    }
}
