/** The settings of the broker, documented where they are declared. */
package io.hawser.broker.config;
