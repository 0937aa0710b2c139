/** Analyses PTX functions and translates them to JVM bytecode. */
package io.hawser.gpu.software.compile;
