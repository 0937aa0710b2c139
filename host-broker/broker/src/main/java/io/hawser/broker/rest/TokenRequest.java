package io.hawser.broker.rest;

import java.time.Instant;

/** A token that is asked for; see openapi.yml. */
public record TokenRequest(String note, Instant expires) { }
