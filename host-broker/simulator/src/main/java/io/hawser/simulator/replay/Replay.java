package io.hawser.simulator.replay;

import io.hawser.shm.turns.TurnPage;
import io.hawser.simulator.report.Results;
import io.hawser.simulator.report.SharePlot;
import io.hawser.simulator.report.ShareSeries;
import io.hawser.turns.RecordingException;
import io.hawser.turns.RecordingReader;
import io.hawser.turns.Seat;
import io.hawser.turns.TurnEvent;
import io.hawser.turns.TurnGroups;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the scheduler against a recording and compares each permit with the recorded one. The recorded states and times
 * are the scheduler's input, so equal code and rules must decide the same.
 */
public final class Replay {
    private static final List<String> PERMITS = List.of("free", "open", "turn", "wait", "next");

    private final RecordingReader reader;
    private final TurnGroups groups;
    private final Map<Integer, RecordedSeat> seats = new HashMap<>();
    private final Map<String, Integer> gpus = new LinkedHashMap<>();
    private final List<List<Demand>> onGpus = new ArrayList<>(); // present sessions by GPU
    private final List<Demand> demands = new ArrayList<>();
    private final List<WeightChange> weightChanges = new ArrayList<>();
    private final long lengthNs;
    private final ShareSeries series;
    private TurnEvent next; // the first event that is not yet used; null at the end
    private long nextLine;
    private long nowNs;
    private boolean isLeftEqual;
    private long leftEqualNs = -1;
    private long decisions;
    private long looks;
    private String difference;

    /** A vGPU's new weight. */
    record WeightChange(long timeNs, String vgpu, int weight) {
    }

    /** The replayed decisions differ; carries no stack, as it ends a replay in an expected way. */
    private static final class DifferenceException extends RuntimeException {
        private static final long serialVersionUID = 1;

        DifferenceException(String message) {
            super(message, null, false, false);
        }
    }

    private static final class UncheckedRecordingException extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final RecordingException cause;

        UncheckedRecordingException(RecordingException cause) {
            super(cause);
            this.cause = cause;
        }
    }

    private final class RecordedSeat implements Seat {
        private final int number;
        private final Demand demand;
        private int state = TurnPage.IDLE;

        private RecordedSeat(int number, Demand demand) {
            this.number = number;
            this.demand = demand;
        }

        @Override
        public int state() {
            if (next instanceof TurnEvent.Read read && read.seat() == number) {
                state = read.state();
                settleAround(demand, () -> demand.changeState(state, nowNs));
                demand.creditUnseen();
                advance();
            }
            demand.see(nowNs);
            return state;
        }

        @Override
        public void setPermit(int permit) {
            if (next == null) {
                return; // the recording ends within this look
            }
            if (!(next instanceof TurnEvent.Permitted recorded) || recorded.seat() != number
                || recorded.permit() != permit) {
                throw new DifferenceException("replayed: permit " + number + " " + PERMITS.get(permit) + "; recorded: "
                    + text(next));
            }
            decisions++;
            demand.changePermit(permit, nowNs);
            advance();
        }
    }

    private Replay(RecordingReader reader, TurnRules rules, long lengthNs) {
        this.reader = reader;
        this.lengthNs = Math.max(1, lengthNs);
        groups = new TurnGroups(rules, this::isLeftEqual, null);
        series = new ShareSeries(this.lengthNs);
    }

    /**
     * Replays a file.
     *
     * @throws RecordingException if the file is no recording.
     */
    public static Replay of(Path file) throws IOException, RecordingException {
        long lengthNs = lengthNs(file);
        try (InputStream in = Files.newInputStream(file)) {
            RecordingReader reader = new RecordingReader(in);
            Replay replay = new Replay(reader, reader.rules(), lengthNs);
            replay.run();
            return replay;
        } catch (UncheckedRecordingException e) {
            throw e.cause;
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static long lengthNs(Path file) throws IOException, RecordingException {
        try (InputStream in = Files.newInputStream(file)) {
            RecordingReader reader = new RecordingReader(in);
            TurnEvent event;
            do {
                event = reader.next();
            } while (event != null);
            return reader.timeNs();
        }
    }

    private void run() {
        advance();
        try {
            while (next != null) {
                step();
            }
        } catch (DifferenceException e) {
            difference = "line " + nextLine + ": " + e.getMessage();
        }
        for (RecordedSeat seat : seats.values()) {
            seat.demand.settle(nowNs, 0);
            seat.demand.leave(nowNs, true);
        }
    }

    private void step() {
        TurnEvent event = next;
        advance();
        switch (event) {
            case TurnEvent.Joined joined -> join(joined);
            case TurnEvent.Left left -> leave(left);
            case TurnEvent.Weighed weighed -> {
                nowNs = weighed.timeNs();
                weightChanges.add(new WeightChange(nowNs, weighed.vgpu(), weighed.weight()));
                groups.setWeight(weighed.vgpu(), weighed.weight(), nowNs);
            }
            case TurnEvent.Looked looked -> {
                nowNs = looked.timeNs();
                looks++;
                groups.look(seats.get(looked.seat()), nowNs);
            }
            case TurnEvent.LeftEqual equal -> setLeftEqual(equal.isLeft());
            case TurnEvent.Abandoned abandoned -> {
                nowNs = abandoned.timeNs();
                groups.abandon(nowNs);
            }
            case TurnEvent.Read read -> throw new DifferenceException("replayed: no read of a state; recorded: "
                + text(event));
            case TurnEvent.Permitted permitted -> throw new DifferenceException("replayed: no permit; recorded: "
                + text(event));
        }
    }

    private void join(TurnEvent.Joined joined) {
        nowNs = joined.timeNs();
        List<Integer> its = joined.gpus().stream().distinct()
            .map(gpu -> gpus.computeIfAbsent(gpu, name -> gpus.size())).toList();
        Demand demand = new Demand(joined.vgpu(), joined.weight(), its, nowNs, series.add(joined.vgpu(), joined.vgpu()),
            (double) lengthNs / SharePlot.BINS);
        demands.add(demand);
        while (onGpus.size() < gpus.size()) {
            onGpus.add(new ArrayList<>());
        }
        its.forEach(gpu -> onGpus.get(gpu).add(demand));
        RecordedSeat seat = new RecordedSeat(joined.seat(), demand);
        seats.put(joined.seat(), seat);
        groups.join(seat, joined.vgpu(), joined.weight(), joined.gpus(), nowNs);
    }

    private void leave(TurnEvent.Left left) {
        nowNs = left.timeNs();
        RecordedSeat seat = seats.remove(left.seat());
        settleAround(seat.demand, () -> seat.demand.leave(nowNs, false));
        seat.demand.gpus.forEach(gpu -> onGpus.get(gpu).remove(seat.demand));
        groups.leave(seat, nowNs);
    }

    /** Counts the work of all sessions whose rates a change of one session's state changes. */
    private void settleAround(Demand changed, Runnable change) {
        changed.settle(nowNs, 0);
        change.run();
        for (int gpu : changed.gpus) {
            onGpus.get(gpu).forEach(this::settle);
        }
    }

    private void settle(Demand demand) {
        if (demand.isBusy()) {
            long most = 1;
            for (int gpu : demand.gpus) {
                most = Math.max(most, onGpus.get(gpu).stream().filter(Demand::isBusy).count());
            }
            demand.settle(nowNs, 1.0 / most);
        }
    }

    private boolean isLeftEqual() {
        if (next instanceof TurnEvent.LeftEqual equal) {
            setLeftEqual(equal.isLeft());
            advance();
        }
        return isLeftEqual;
    }

    private void setLeftEqual(boolean isLeft) {
        isLeftEqual = isLeft;
        leftEqualNs = isLeft && leftEqualNs < 0 ? nowNs : leftEqualNs;
    }

    private void advance() {
        try {
            next = reader.next();
            nextLine = reader.line();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (RecordingException e) {
            throw new UncheckedRecordingException(e);
        }
    }

    private static String text(TurnEvent event) {
        return switch (event) {
            case TurnEvent.Permitted permitted -> "permit " + permitted.seat() + " " + PERMITS.get(permitted.permit());
            case TurnEvent.Read read -> "a state of seat " + read.seat();
            default -> "no further permit in this look";
        };
    }

    /** The first difference, with its line; null if all decisions are equal. */
    public String difference() {
        return difference;
    }

    /** Permits that were compared. */
    public long decisions() {
        return decisions;
    }

    /** Looks that were replayed. */
    public long looks() {
        return looks;
    }

    /** The rules of the recording. */
    public TurnRules rules() {
        return reader.rules();
    }

    /** Time from the start of the recording to its last event. */
    public long lengthNs() {
        return lengthNs;
    }

    /** Number of GPUs; 0 without sessions. */
    public int gpus() {
        return gpus.size();
    }

    /** What the sessions got while the broker recorded. */
    public Results results() {
        return new Results(demands.stream().map(demand -> demand.result(nowNs)).toList(), lengthNs,
            Math.max(1, gpus.size()));
    }

    /** Shares against time while the broker recorded. */
    public ShareSeries series() {
        return series;
    }

    List<Demand> demands() {
        return demands;
    }

    List<WeightChange> weightChanges() {
        return weightChanges;
    }

    /** When the driver began to divide the time of equal vGPUs; -1 for never. */
    long leftEqualNs() {
        return leftEqualNs;
    }
}
