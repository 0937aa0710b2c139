/** The broker: start, stop and life cycle of the service that gives guests a share of a GPU. */
package io.hawser.broker;
