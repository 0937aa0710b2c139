package io.hawser.shm;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.shm")
            // layout writes this module's constants at build time.
            .floor("control", "layout", "ledger", "os", "region", "wire")
            .floor("rdma", "ring")
            .floor("events", "turns")
            .check();
    }
}
