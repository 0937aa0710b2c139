/** The administrator's command line: everything of the broker's REST interface, as tables or JSON. */
package io.hawser.ctl;
