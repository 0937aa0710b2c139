/** Private native memory for records and copies. */
package io.hawser.worker.memory;
