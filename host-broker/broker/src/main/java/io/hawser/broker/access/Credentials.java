package io.hawser.broker.access;

/**
 * What a request shows of who sends it.
 *
 * @param method of HTTP.
 * @param authorization header; null when there is none.
 * @param cookie of the page's login; null when there is none.
 * @param marked whether it has the header {@code X-Hawser-Request}, which no page of another site can add.
 * @param peer address of the other end.
 * @param here whether it comes from the loopback interface, under a name of it and past no proxy.
 */
public record Credentials(String method, String authorization, String cookie, boolean marked, String peer,
    boolean here) {
    /** Whether nothing is changed by it. */
    boolean reads() {
        return "GET".equals(method) || "HEAD".equals(method);
    }

    @Override
    public String toString() {
        return "Credentials[" + method + " from " + peer + "]";
    }
}
