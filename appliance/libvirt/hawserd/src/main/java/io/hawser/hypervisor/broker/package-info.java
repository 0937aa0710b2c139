/** The broker's REST interface, as far as vGPUs of domains need it. */
package io.hawser.hypervisor.broker;
