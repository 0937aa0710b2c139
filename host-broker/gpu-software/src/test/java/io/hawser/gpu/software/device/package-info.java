/** Tests of the software device. */
package io.hawser.gpu.software.device;
