/** Tests of the hand-written calls' arithmetic. */
package io.hawser.worker.calls;
