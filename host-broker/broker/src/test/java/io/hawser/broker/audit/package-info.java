/** Tests of the broker: audit. */
package io.hawser.broker.audit;
