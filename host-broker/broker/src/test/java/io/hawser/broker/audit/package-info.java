/** Tests of the audit log. */
package io.hawser.broker.audit;
