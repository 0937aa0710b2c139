/** Tests of swapping. */
package io.hawser.broker.swap;
