package io.hawser.broker.access;

/**
 * The parts of a request that identify its sender.
 *
 * @param method of HTTP.
 * @param authorization header; null when there is none.
 * @param cookie of the page's login; null when there is none.
 * @param marked whether it has the header {@code X-Hawser-Request}, which no page of another site can add.
 * @param peer address of the other end.
 * @param local whether it comes directly from the loopback interface, addressed by a loopback name, through no proxy.
 */
public record Credentials(String method, String authorization, String cookie, boolean marked, String peer,
    boolean local) {
    /** Whether the request changes nothing. */
    boolean isRead() {
        return "GET".equals(method) || "HEAD".equals(method);
    }

    @Override
    public String toString() {
        return "Credentials[" + method + " from " + peer + "]";
    }
}
