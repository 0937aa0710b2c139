/** The GPUs' figures: NVIDIA's from NVML, the software GPU's from the use of its workers. */
package io.hawser.broker.nvml;
