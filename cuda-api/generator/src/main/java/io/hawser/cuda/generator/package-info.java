/** The generator's command: reads the description, writes C or Java. */
package io.hawser.cuda.generator;
