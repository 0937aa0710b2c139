/** Tests of moves between GPUs. */
package io.hawser.broker.move;
