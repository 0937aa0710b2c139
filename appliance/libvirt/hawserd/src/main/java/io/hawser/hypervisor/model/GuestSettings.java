package io.hawser.hypervisor.model;

/**
 * The settings of a guest that uses TCP or RDMA.
 *
 * @param carrier {@code tcp} or {@code rdma}.
 * @param broker {@code host:port}, or {@code tls://host:port}.
 * @param token the secret of its vGPU; never logged.
 * @param ca certificates (PEM) that it trusts under TLS; empty without TLS, or to use the guest's own.
 */
public record GuestSettings(String carrier, String broker, String token, String ca) {
    @Override
    public String toString() {
        // The record's own method would print the token.
        return "GuestSettings[carrier=" + carrier + " broker=" + broker + "]";
    }
}
