package io.hawser.broker.web;

/** The class of a peer, set when the peer connects. */
enum Standing {
    /** A remote peer without a recent login. */
    STRANGER,
    /** A user of this machine, over the loopback interface. */
    LOCAL,
    /** A remote peer with a recent login, or a process of root or of the broker's user on this machine. */
    TRUSTED
}
