/** Status of a vGPU for its guests, also without a session. */
package io.hawser.broker.status;
