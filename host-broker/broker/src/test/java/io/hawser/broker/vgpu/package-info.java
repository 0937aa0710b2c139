/** Tests of vGPUs. */
package io.hawser.broker.vgpu;
