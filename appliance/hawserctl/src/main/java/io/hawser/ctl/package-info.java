/** The administrator's command line: the broker's REST interface and hawserd's socket, as tables or JSON. */
package io.hawser.ctl;
