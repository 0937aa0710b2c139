/** The scheduler of turns without threads, clocks and pages: broker and simulator run it. */
package io.hawser.turns;
