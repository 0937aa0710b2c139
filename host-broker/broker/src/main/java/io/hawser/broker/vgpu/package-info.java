/** vGPUs: their properties, their placement and their admission of guests. */
package io.hawser.broker.vgpu;
