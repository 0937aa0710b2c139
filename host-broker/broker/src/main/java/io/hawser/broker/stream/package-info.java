/** What an operator watches: pictures of the broker, what changed in them, events and history, pushed. */
package io.hawser.broker.stream;
