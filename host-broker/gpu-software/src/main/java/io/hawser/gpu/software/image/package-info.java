/** Device code images as programs carry them: fat binaries, compressed or not, PTX text, ELF. */
package io.hawser.gpu.software.image;
