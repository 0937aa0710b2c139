/** The REST interface of openapi.yml. */
package io.hawser.broker.rest;
