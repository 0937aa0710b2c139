/** The record layout, described once in {@code record.yaml}, and the emitters that write it for C and Java. */
package io.hawser.shm.layout;
