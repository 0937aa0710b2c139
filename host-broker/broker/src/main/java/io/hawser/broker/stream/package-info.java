/** The live stream for operators: pictures of the broker, their changes, events and history. */
package io.hawser.broker.stream;
