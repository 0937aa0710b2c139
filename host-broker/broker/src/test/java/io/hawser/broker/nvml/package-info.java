/** Tests of the GPUs' readings. */
package io.hawser.broker.nvml;
