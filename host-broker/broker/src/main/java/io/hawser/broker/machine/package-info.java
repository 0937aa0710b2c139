/** The broker's requirements of the machine, and the checks for them. */
package io.hawser.broker.machine;
