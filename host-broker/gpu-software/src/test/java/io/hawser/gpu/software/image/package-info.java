/** Tests of reading device code images. */
package io.hawser.gpu.software.image;
