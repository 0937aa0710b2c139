/** An NVIDIA GPU behind the worker's interface, by the Driver API of the machine's own libcuda.so.1. */
package io.hawser.gpu.nvidia;
