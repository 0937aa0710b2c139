/** Tests of hawserctl. */
package io.hawser.ctl;
