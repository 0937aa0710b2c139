/** The check that packages use only packages on lower floors. */
package io.hawser.floors;
