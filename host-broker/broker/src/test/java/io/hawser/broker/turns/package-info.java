/** Tests of the GPU's turns. The tests of the queue use a simulated clock. */
package io.hawser.broker.turns;
