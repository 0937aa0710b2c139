package io.hawser.broker.rest;

/** A request for a login, by name and password or by the admin token; see openapi.yml. */
public record LoginRequest(String name, String password, String token) {
    @Override
    public String toString() {
        return "LoginRequest[" + (token == null ? "by name" : "by token") + "]";
    }
}
