/** The hand-written calls of the API description, one class a group of objects. */
package io.hawser.worker.calls;
