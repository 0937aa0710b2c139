/** Reads device code images in the forms that programs contain: fat binaries (compressed or not), PTX text, ELF. */
package io.hawser.gpu.software.image;
