/** Running translated kernels: memory, threads of one CTA, barriers, warp operations and arithmetic. */
package io.hawser.gpu.software.exec;
