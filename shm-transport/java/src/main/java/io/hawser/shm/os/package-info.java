/** What shared memory needs of Linux and Java does not offer: mappings, futexes, event descriptors, file locks. */
package io.hawser.shm.os;
