/** Tests of the health checks. */
package io.hawser.broker.health;
