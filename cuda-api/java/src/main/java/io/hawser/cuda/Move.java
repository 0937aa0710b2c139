package io.hawser.cuda;

/** The meaning of a call for a session that moves; {@code move} of the description. */
public enum Move {
    /** It leaves no state that a journal must have. */
    NONE,
    /** It makes an object: the journal keeps the call until the object ends. */
    MAKE,
    /** It changes an object: the journal keeps the last call with this content. */
    SET,
    /** It leaves state that no journal has. */
    PINS
}
