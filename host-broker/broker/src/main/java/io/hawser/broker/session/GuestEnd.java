package io.hawser.broker.session;

import io.hawser.broker.pool.LedgerSlot;
import io.hawser.broker.pool.Worker;
import java.io.IOException;

/** The guest's end of a running session, which can go to another worker. Event loop only. */
@FunctionalInterface
public interface GuestEnd {
    /**
     * Sends a further worker the session and its guest's socket or region. The present worker keeps its own copy.
     *
     * @param slot of the worker in the ledger.
     * @param socket the guest's socket, from the present worker; still the caller's. -1 when that has passed none.
     * @throws IOException when the worker does not receive them, or the guest's end is gone.
     */
    void give(Worker worker, LedgerSlot slot, int socket) throws IOException;
}
