/** Tests of the broker: rest. */
package io.hawser.broker.rest;
