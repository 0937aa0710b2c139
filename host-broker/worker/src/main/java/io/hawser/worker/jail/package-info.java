/** What a worker takes from itself before it meets its guest: rights, system calls, files. */
package io.hawser.worker.jail;
