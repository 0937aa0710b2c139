package io.hawser.worker.session;

/** Connects the turns with their session. Session thread. */
record TurnSurroundings(Session session) implements Turns.Surroundings {
    @Override
    public void mark(StreamState stream) {
        session.work().whenReached(stream, status -> {});
    }

    @Override
    public void checkAgain(Runnable check, long delayMs) {
        session.serveLater(check, delayMs);
    }

    @Override
    public void whenReached(StreamState stream, Runnable action) {
        session.work().whenReached(stream, status -> action.run());
    }

    @Override
    public void ring() {
        session.seat().ring();
    }
}
