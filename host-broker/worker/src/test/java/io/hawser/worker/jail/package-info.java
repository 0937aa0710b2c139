/** Tests of the jail: the filter's results, and the calls that a jailed process can still make. */
package io.hawser.worker.jail;
