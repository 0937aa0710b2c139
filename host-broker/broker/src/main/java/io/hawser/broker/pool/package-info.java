/** Worker processes: started ahead, watched, handed to sessions and reaped. */
package io.hawser.broker.pool;
