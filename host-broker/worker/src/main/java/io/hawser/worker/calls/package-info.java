/** The hand-written calls of the API description, one class per group of objects. */
package io.hawser.worker.calls;
