package io.hawser.broker.door;

import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.token.TokenTable;
import java.time.Duration;

/**
 * The dependencies and settings of every connection.
 *
 * @param status sent to guests that ask for it instead of a session.
 * @param descriptionHash hash of the workers' API description.
 * @param handshakeTimeout time from connect to PROOF.
 * @param hasRdma whether workers may have an RDMA device.
 * @param oldProofs whether the door admits guests of handshake version 1.
 * @param elsewhere finds the broker of a vGPU that this one does not hold.
 * @param receptions of sessions that come from other brokers.
 */
record DoorContext(TokenTable tokens, SessionRegistry sessions, WorkerPools pools, StatusSource status,
    ConnectionLimits limits,
    LogLimiter logLimiter, DoorListener listener, long descriptionHash, Duration handshakeTimeout,
    boolean hasRdma, boolean oldProofs, Elsewhere elsewhere, Receptions receptions) {}
