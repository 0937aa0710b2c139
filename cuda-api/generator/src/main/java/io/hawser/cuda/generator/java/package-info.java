/** Emitters for Java. */
package io.hawser.cuda.generator.java;
