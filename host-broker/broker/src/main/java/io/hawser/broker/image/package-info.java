/** Device code, kept for later sessions of the same vGPU. */
package io.hawser.broker.image;
