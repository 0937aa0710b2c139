package io.hawser.poolsimulator;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.poolsimulator")
            .floor("load", "report")
            .floor("engine", "database")
            .floor("") // the command
            .check();
    }
}
