/** Time series for plots: the broker, each GPU and each vGPU, by the second and by 15 seconds, in bounded memory. */
package io.hawser.broker.history;
