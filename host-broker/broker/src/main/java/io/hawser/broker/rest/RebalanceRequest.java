package io.hawser.broker.rest;

/**
 * The wish of a rebalancing; see openapi.yml.
 *
 * @param dryRun whether to plan the moves only; null for no.
 * @param limit most number of moves; null for the default.
 */
public record RebalanceRequest(Boolean dryRun, Integer limit) {}
