package io.hawser.broker;

import io.hawser.broker.model.SessionView;
import io.hawser.broker.session.MpsRecovery;
import io.hawser.broker.session.SessionRegistry;

/**
 * Passes the sessions' events to the broker's listener. Event loop only.
 *
 * @param recovery from faults of the GPU; null without MPS.
 */
record SessionEvents(BrokerListener listener, MpsRecovery recovery) implements SessionRegistry.Listener {
    @Override
    public void onStart(SessionView session) {
        listener.sessionRuns(session);
    }

    @Override
    public void onCarrier(SessionView session) {
        listener.sessionCarried(session);
    }

    @Override
    public void onEnd(SessionView session, String reason, boolean error) {
        listener.sessionOver(session, reason, error);
    }

    @Override
    public void onGpuLost(SessionView session, long result) {
        if (recovery != null) {
            recovery.recover(session, result);
        }
    }
}
