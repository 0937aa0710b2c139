/** Regions: served shared memory, its slots, and the guest processes that claim them. */
package io.hawser.broker.region;
