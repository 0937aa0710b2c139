package io.hawser.broker.rest;

import java.time.Instant;

/** A request for a token; see openapi.yml. */
public record TokenRequest(String note, Instant expires) {}
