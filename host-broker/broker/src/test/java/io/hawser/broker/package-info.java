/** Tests of the broker. */
package io.hawser.broker;
