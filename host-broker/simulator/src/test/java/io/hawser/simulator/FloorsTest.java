package io.hawser.simulator;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.simulator")
            .floor("engine")
            .floor("report")
            .floor("load", "replay")
            .floor("") // the command
            .check();
    }
}
