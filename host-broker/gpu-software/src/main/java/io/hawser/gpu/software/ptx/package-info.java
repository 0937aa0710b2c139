/** Reading PTX text: lexer, parser and the syntax tree. */
package io.hawser.gpu.software.ptx;
