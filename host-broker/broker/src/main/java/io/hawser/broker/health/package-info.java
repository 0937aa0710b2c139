/** Liveness and readiness. */
package io.hawser.broker.health;
