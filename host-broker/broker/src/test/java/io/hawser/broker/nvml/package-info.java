/** Tests of the broker: nvml. */
package io.hawser.broker.nvml;
