package io.hawser.broker;

import io.hawser.broker.move.Moves;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.session.SessionRegistry;
import java.time.Duration;
import java.util.function.Supplier;

/** Passes the pools' events to the sessions, their moves and the broker's listener. Event loop only. */
record WorkerEvents(SessionRegistry sessions, Supplier<Moves> moves, BrokerListener listener)
    implements WorkerPool.Listener {
    @Override
    public void onMessage(Worker worker, WorkerMessage message) {
        if (!moves.get().handle(worker, message)) {
            sessions.handle(worker, message);
        }
    }

    @Override
    public void onExit(Worker worker, String reason) {
        moves.get().onExit(worker, reason);
        sessions.onExit(worker, reason);
    }

    @Override
    public void onStartFailure(String reason) {
        listener.workerFailed(reason);
    }

    @Override
    public void onReady(Duration time) {
        listener.workerStarted(time);
    }
}
