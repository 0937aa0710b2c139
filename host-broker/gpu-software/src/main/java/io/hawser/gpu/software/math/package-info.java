/** Math libraries of the software GPU, over OpenBLAS. */
package io.hawser.gpu.software.math;
