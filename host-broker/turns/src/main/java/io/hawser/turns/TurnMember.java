package io.hawser.turns;

import io.hawser.shm.turns.TurnPage;
import java.util.List;

/** A worker in the turns: its seat, and the recorder's place. */
final class TurnMember {
    final int number;
    final String vgpu;
    final List<String> gpus;
    int weight;
    TurnQueue queue;
    private final Seat seat;
    private final TurnRecorder recorder; // null: none
    private int lastState = TurnPage.IDLE;

    TurnMember(int number, Seat seat, String vgpu, int weight, List<String> gpus, TurnRecorder recorder) {
        this.number = number;
        this.seat = seat;
        this.vgpu = vgpu;
        this.weight = weight;
        this.gpus = List.copyOf(gpus);
        this.recorder = recorder;
    }

    /** Whether the state differs from the last one that {@link #read} returned. */
    boolean hasChanged() {
        return seat.state() != lastState;
    }

    int read() {
        int state = seat.state();
        if (state != lastState) {
            lastState = state;
            if (recorder != null) {
                recorder.read(number, state);
            }
        }
        return state;
    }

    int copied() {
        return seat.copied();
    }

    void setCopies(int copies) {
        seat.setCopies(copies);
    }

    void setPermit(int permit) {
        if (recorder != null) {
            recorder.permitted(number, permit);
        }
        seat.setPermit(permit);
    }
}
