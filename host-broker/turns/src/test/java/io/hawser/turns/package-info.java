/** Tests of the scheduler. */
package io.hawser.turns;
