/** Analysis of PTX functions and their translation to JVM bytecode. */
package io.hawser.gpu.software.compile;
