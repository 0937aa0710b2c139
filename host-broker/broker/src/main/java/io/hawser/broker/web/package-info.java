/** The door in front of the REST interface and the page: places of peers, and the limits of requests. */
package io.hawser.broker.web;
