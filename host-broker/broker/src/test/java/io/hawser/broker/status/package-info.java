/** Tests of the status. */
package io.hawser.broker.status;
