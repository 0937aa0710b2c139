/** Sessions: admission, registry, statistics and their end. */
package io.hawser.broker.session;
