/** The software device: memory, contexts, streams, events, modules and launches. */
package io.hawser.gpu.software.device;
