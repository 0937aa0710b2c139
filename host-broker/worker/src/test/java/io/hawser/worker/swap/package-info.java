/** Tests of the keeper. */
package io.hawser.worker.swap;
