package io.hawser.broker.rest;

import io.hawser.broker.access.Identity;

/** The caller's identity; see openapi.yml. */
public record Me(String name, String role, String via) {
    static Me of(Identity identity) {
        return new Me(identity.name(), identity.role().label(), identity.via().label());
    }
}
