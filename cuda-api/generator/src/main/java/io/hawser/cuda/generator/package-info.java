/** The generator's command: reads the description and writes C or Java. */
package io.hawser.cuda.generator;
