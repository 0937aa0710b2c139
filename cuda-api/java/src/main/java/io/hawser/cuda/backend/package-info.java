/** A GPU for the worker: the Driver API, and the further functions that a remote worker needs. */
package io.hawser.cuda.backend;
