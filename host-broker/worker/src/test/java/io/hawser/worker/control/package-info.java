/** Tests of the control socket. */
package io.hawser.worker.control;
