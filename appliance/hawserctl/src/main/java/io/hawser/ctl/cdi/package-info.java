/** A vGPU as a device of containers: the CDI specification and the files that it mounts. */
package io.hawser.ctl.cdi;
