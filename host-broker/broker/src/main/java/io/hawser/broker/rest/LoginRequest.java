package io.hawser.broker.rest;

/** A login that is asked for: a name and a password, or the admin token; see openapi.yml. */
public record LoginRequest(String name, String password, String token) {
    @Override
    public String toString() {
        return "LoginRequest[" + (token == null ? "by name" : "by token") + "]";
    }
}
