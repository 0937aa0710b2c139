/** NVIDIA GPUs as a backend of the worker, through the Driver API of the machine's own libcuda.so.1. */
package io.hawser.gpu.nvidia;
