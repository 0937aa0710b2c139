package io.hawser.shm.ring;

/**
 * The other end of a ring has written an invalid position: lower than before, beyond the available bytes, or not a
 * multiple of 8. The session ends.
 */
public final class RingCorruptException extends Exception {
    private static final long serialVersionUID = 1;

    RingCorruptException(String rule, long position, long from, long to) {
        super(rule + ": position=" + Long.toUnsignedString(position) + ", from=" + Long.toUnsignedString(from) + ", to="
            + Long.toUnsignedString(to));
    }
}
