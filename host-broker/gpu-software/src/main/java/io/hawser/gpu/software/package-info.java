/** The software GPU: a backend that runs PTX on the host's processors. */
package io.hawser.gpu.software;
