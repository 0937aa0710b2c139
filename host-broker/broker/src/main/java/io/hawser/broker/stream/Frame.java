package io.hawser.broker.stream;

/**
 * A server-sent event, encoded once for all clients.
 *
 * @param name {@code picture}, {@code change}, {@code event}, or empty for a comment that shows a live connection.
 * @param json data of the event, one line.
 */
record Frame(String name, String json) {
    static final Frame ALIVE = new Frame("", "");
}
