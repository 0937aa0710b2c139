/** Tokens: who may use which vGPU, and who may use the REST interface. */
package io.hawser.broker.token;
