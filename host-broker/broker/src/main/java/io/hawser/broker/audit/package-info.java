/** The audit log: a record of administrative acts and of attempts at them. */
package io.hawser.broker.audit;
