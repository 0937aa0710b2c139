package io.hawser.turns;

import java.util.List;

/** An event of a recording; {@link TurnRecorder} says what each means. Times are nanoseconds since its start. */
public sealed interface TurnEvent {
    /** {@link TurnRecorder#joined}. */
    record Joined(long timeNs, int seat, String vgpu, int weight, List<String> gpus) implements TurnEvent {
    }

    /** {@link TurnRecorder#left}. */
    record Left(long timeNs, int seat) implements TurnEvent {
    }

    /** {@link TurnRecorder#weighed}. */
    record Weighed(long timeNs, String vgpu, int weight) implements TurnEvent {
    }

    /** {@link TurnRecorder#looked}. */
    record Looked(long timeNs, int seat) implements TurnEvent {
    }

    /** {@link TurnRecorder#read}. */
    record Read(int seat, int state) implements TurnEvent {
    }

    /** {@link TurnRecorder#permitted}. */
    record Permitted(int seat, int permit) implements TurnEvent {
    }

    /** {@link TurnRecorder#leftEqual}. */
    record LeftEqual(boolean isLeft) implements TurnEvent {
    }

    /** {@link TurnRecorder#abandoned}. */
    record Abandoned(long timeNs) implements TurnEvent {
    }
}
