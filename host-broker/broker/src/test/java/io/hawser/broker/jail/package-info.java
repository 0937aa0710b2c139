/** Tests of the broker's part of the jail. */
package io.hawser.broker.jail;
