/** Tests of the reading of device code images. */
package io.hawser.gpu.software.image;
