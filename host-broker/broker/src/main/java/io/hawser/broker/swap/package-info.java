/** Where the memory of swappable vGPUs is. */
package io.hawser.broker.swap;
