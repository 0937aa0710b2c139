package io.hawser.broker;

import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.pool.WorkerPool;
import io.hawser.broker.session.SessionRegistry;
import java.time.Duration;

/** Passes the pools' events to the sessions and to the broker's listener. Event loop only. */
record WorkerEvents(SessionRegistry sessions, BrokerListener listener) implements WorkerPool.Listener {
    @Override
    public void onMessage(Worker worker, WorkerMessage message) {
        sessions.handle(worker, message);
    }

    @Override
    public void onExit(Worker worker, String reason) {
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
