package io.hawser.poolsimulator.database;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Looks at the session that holds the pool's lock, every few milliseconds, on a connection of its own. The parts of the
 * looks are the parts of the time.
 */
final class LockSampler implements AutoCloseable {
    private static final int LOOK_MS = 5;
    private static final String HOLDER = "select a.state, coalesce(a.wait_event_type, ''), coalesce(a.wait_event, ''), "
        + "a.query from pg_locks l join pg_stat_activity a on a.pid = l.pid where l.locktype = 'advisory' and "
        + "l.granted";

    private final Connection connection;
    private final Map<State, Integer> looks = new EnumMap<>(State.class);
    private final Thread thread = new Thread(this::run, "lock-sampler");
    private volatile boolean isMeasuring;
    private volatile boolean isStopping;
    private volatile SQLException failure;

    /** What the lock's holder does. */
    enum State {
        /** Nobody holds the lock. */
        FREE("nobody has the lock"),
        /** The broker works, or its answer or request is under way. */
        BROKER("holder: broker and round trips"),
        /** The server executes a statement. */
        SERVER("holder: statements in the server"),
        /** The server writes the log of the commit to the disk. */
        COMMIT("holder: commit to the disk");

        private final String text;

        State(String text) {
            this.text = text;
        }

        String text() {
            return text;
        }
    }

    LockSampler(Access access) throws SQLException {
        connection = access.connect();
        thread.setDaemon(true);
        thread.start();
    }

    /** Counts looks from now on, or no more. */
    void measure(boolean now) {
        isMeasuring = now;
    }

    private void run() {
        try (PreparedStatement select = connection.prepareStatement(HOLDER)) {
            while (!isStopping) {
                State state = look(select);
                if (isMeasuring) {
                    synchronized (this) {
                        looks.merge(state, 1, Integer::sum);
                    }
                }
                TimeUnit.MILLISECONDS.sleep(LOOK_MS);
            }
        } catch (SQLException e) {
            failure = e;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static State look(PreparedStatement select) throws SQLException {
        try (ResultSet row = select.executeQuery()) {
            if (!row.next()) {
                return State.FREE;
            }
            if (row.getString(1).startsWith("idle")) {
                return State.BROKER;
            }
            boolean isCommit = row.getString(2).equals("IO") || row.getString(3).startsWith("WAL")
                || row.getString(4).equalsIgnoreCase("commit");
            return isCommit ? State.COMMIT : State.SERVER;
        }
    }

    /** Parts of the time, 0 to 1. */
    synchronized Map<State, Double> parts() throws SQLException {
        if (failure != null) {
            throw failure;
        }
        double all = Math.max(1, looks.values().stream().mapToInt(Integer::intValue).sum());
        Map<State, Double> parts = new EnumMap<>(State.class);
        for (State state : State.values()) {
            parts.put(state, looks.getOrDefault(state, 0) / all);
        }
        return parts;
    }

    @Override
    public void close() throws SQLException {
        isStopping = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        connection.close();
    }
}
