package io.hawser.broker.web;

/** The class of a peer, set when the peer connects. */
enum Standing {
    /** A peer of the network without a login of late. */
    STRANGER,
    /** A user of this machine, over the loopback interface. */
    LOCAL,
    /** A peer of the network that logged in of late, or a process of root or of the broker's user on this machine. */
    TRUSTED
}
