/** What the GPUs tell of themselves: NVIDIA's by NVML, the software GPU's by what its workers use. */
package io.hawser.broker.nvml;
