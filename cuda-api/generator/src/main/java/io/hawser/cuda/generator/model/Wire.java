package io.hawser.cuda.generator.model;

import java.util.ArrayList;
import java.util.List;

/**
 * The places of the parameters in a payload.
 *
 * @param slots in declared order.
 * @param fixedBytes size of the fixed part, a multiple of 8; buffers follow.
 */
public record Wire(List<Slot> slots, int fixedBytes) {

    /** A parameter and its offset from the start of the payload; for a buffer, the offset of its u32 length. */
    public record Slot(Param param, int offset) {
    }

    static Wire of(List<Param> params) {
        List<Slot> slots = new ArrayList<>();
        int end = 0;
        for (Param param : params) {
            int at = TypeTable.align(end, param.fixedAlignment());
            slots.add(new Slot(param, at));
            end = at + param.fixedSize();
        }
        return new Wire(slots, TypeTable.align(end, 8));
    }

    /** The slots of buffers. */
    public List<Slot> buffers() {
        return slots.stream().filter(s -> s.param().isBuffer()).toList();
    }
}
