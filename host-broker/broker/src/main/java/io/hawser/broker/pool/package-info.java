/** Starts worker processes ahead, monitors them, hands them to sessions and reaps them. */
package io.hawser.broker.pool;
