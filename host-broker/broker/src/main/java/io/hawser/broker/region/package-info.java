/** Regions: shared memory that is served, the slots in it, and the guest processes that claim them. */
package io.hawser.broker.region;
