/** The Prometheus metrics. */
package io.hawser.broker.metrics;
