/** Tests of the door in front of the REST interface. */
package io.hawser.broker.web;
