/** Reads PTX text: lexer, parser and syntax tree. */
package io.hawser.gpu.software.ptx;
