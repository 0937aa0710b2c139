/** The objects of one session: handles, allocations, staging memory, credit, images, ends of asynchronous work. */
package io.hawser.worker.session;
