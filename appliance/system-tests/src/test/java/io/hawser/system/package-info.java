/** The whole chain as processes: guest programs, guest libraries, broker, workers and the software GPU. */
package io.hawser.system;
