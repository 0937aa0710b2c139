/** A GPU as the worker sees it: the Driver API and what a remote worker needs beyond it. */
package io.hawser.cuda.backend;
