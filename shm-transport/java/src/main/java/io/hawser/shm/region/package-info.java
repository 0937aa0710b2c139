/** The header of a region and the places of its parts, with the limits that host and guest share; no I/O. */
package io.hawser.shm.region;
