/** Tests of the REST interface. */
package io.hawser.broker.rest;
