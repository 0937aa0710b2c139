/** Tests of the jail: the filter's answers, and what a process in the jail can still do. */
package io.hawser.worker.jail;
