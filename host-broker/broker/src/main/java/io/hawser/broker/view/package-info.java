/** The values that the REST interface and the live page show. */
package io.hawser.broker.view;
