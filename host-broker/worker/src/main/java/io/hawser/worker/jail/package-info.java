/** Confines a worker before it serves its guest: removes rights, system calls and access to files. */
package io.hawser.worker.jail;
