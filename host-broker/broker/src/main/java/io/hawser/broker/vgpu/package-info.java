/** vGPUs: what they are, where they are placed, who makes and changes them. */
package io.hawser.broker.vgpu;
