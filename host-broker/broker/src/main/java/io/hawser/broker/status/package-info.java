/** What a guest may ask of its vGPU without a session. */
package io.hawser.broker.status;
