/** Runs translated kernels: memory, the threads of a CTA, barriers, warp operations and arithmetic. */
package io.hawser.gpu.software.exec;
