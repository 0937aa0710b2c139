package io.hawser.turns;

import java.util.List;

/**
 * The text of a recording. Each line ends with a line feed and has words between single blanks, in ASCII. Names are
 * URL-encoded. An unfinished last line does not count.
 *
 * <pre>
 * hawser-turns 1
 * rules QUANTUM_NS GRACE_NS LINGER_NS TURN_PARTS FIRST_LINGERS LATE_RETURNS
 * join TIME_NS SEAT VGPU WEIGHT [GPU,...]
 * leave TIME_NS SEAT
 * weight TIME_NS VGPU WEIGHT
 * look TIME_NS SEAT
 * state SEAT idle|wants|busy
 * permit SEAT free|open|turn|wait|next
 * equal 0|1
 * abandon TIME_NS
 * </pre>
 */
final class RecordingFormat {
    static final String HEADER = "hawser-turns 1";
    static final int MAX_LINE_BYTES = 65536; // a wrong file must not fill the memory
    static final List<String> STATES = List.of("idle", "wants", "busy"); // by the numbers of TurnPage, as the next
    static final List<String> PERMITS = List.of("free", "open", "turn", "wait", "next");

    private RecordingFormat() {
    }
}
