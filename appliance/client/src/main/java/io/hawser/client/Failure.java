package io.hawser.client;

/** The kinds of a {@link ClientException}. */
public enum Failure {
    /** The broker or hawserd rejected the request, or failed. */
    REFUSED,
    /** An argument, a setting, or a file that one of them names, is wrong. */
    INVALID,
    /** No broker or no hawserd answers. */
    NOT_REACHABLE,
    /** The broker or hawserd does not know the user, or the user lacks the right. */
    NOT_ALLOWED,
    /** The named object does not exist. */
    NOT_FOUND,
    /** The object has another owner than expected: another client changed it. */
    CHANGED
}
