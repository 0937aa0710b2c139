package io.hawser.broker.door;

import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.token.TokenTable;
import java.time.Duration;

/**
 * What every connection needs.
 *
 * @param status told to guests that ask for it instead of a session.
 * @param descriptionHash of the API that the workers speak.
 * @param handshakeTimeout from connect to PROOF.
 * @param oldProofs whether guests of version 1 of the handshake may come.
 */
record DoorContext(TokenTable tokens, SessionRegistry sessions, WorkerPools pools, StatusSource status,
    ConnectionLimits limits,
    LogLimiter logLimiter, DoorListener listener, long descriptionHash, Duration handshakeTimeout,
    boolean oldProofs) { }
