/** The layouts of record and region, described once in YAML, and the emitters that write them for C and Java. */
package io.hawser.shm.layout;
