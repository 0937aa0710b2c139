/** Tests of the turns, with a clock that they turn themselves. */
package io.hawser.broker.turns;
