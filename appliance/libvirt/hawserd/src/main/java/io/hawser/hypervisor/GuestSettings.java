package io.hawser.hypervisor;

/**
 * What a guest needs to come by TCP.
 *
 * @param broker {@code host:port}, or {@code tls://host:port}.
 * @param token the secret of its vGPU; never logged.
 * @param ca certificates (PEM) that it trusts under TLS; empty without TLS, or for those of the guest.
 */
public record GuestSettings(String broker, String token, String ca) {
    @Override
    public String toString() {
        return "GuestSettings[broker=" + broker + "]"; // a record's own would tell the token
    }
}
