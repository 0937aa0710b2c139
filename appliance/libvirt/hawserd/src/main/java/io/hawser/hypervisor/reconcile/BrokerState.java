package io.hawser.hypervisor.reconcile;

import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;

/**
 * The broker as a pass finds it.
 *
 * @param picture null if the broker is away.
 * @param problem why the broker is away.
 */
record BrokerState(Shares.Picture picture, String problem) {
    /** The picture; fails if the broker is away. */
    Shares.Picture require() throws ShareException {
        if (picture == null) {
            throw new ShareException(ShareException.Reason.AWAY, problem);
        }
        return picture;
    }
}
