/** Work that the libraries of the software GPU put into streams. */
package io.hawser.gpu.software.work;
