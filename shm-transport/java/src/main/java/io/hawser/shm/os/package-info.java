/** Linux functions for shared memory that Java does not offer: mappings, futexes, event descriptors, file locks. */
package io.hawser.shm.os;
