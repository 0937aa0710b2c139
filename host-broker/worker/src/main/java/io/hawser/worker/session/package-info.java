/** What one session owns: handles, allocations, staging memory, credit, images, and the ends of asynchronous work. */
package io.hawser.worker.session;
