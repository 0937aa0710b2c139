/** Emitters for C. */
package io.hawser.cuda.generator.c;
