/** The Quarkus application: it starts and stops the broker and its services. */
package io.hawser.broker.app;
