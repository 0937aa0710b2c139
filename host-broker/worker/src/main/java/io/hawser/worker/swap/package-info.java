/** Slabs of sessions that another worker keeps in host memory: its work, and the session's way to it. */
package io.hawser.worker.swap;
