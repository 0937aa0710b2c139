/** Tests of the NVIDIA backend that need no GPU. */
package io.hawser.gpu.nvidia;
