/** Output for people: tables, the live picture, and questions on a terminal. */
package io.hawser.ctl.terminal;
