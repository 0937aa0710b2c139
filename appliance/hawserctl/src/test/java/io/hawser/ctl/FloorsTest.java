package io.hawser.ctl;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.ctl")
            .floor("terminal")
            .floor("cdi")
            .floor("command")
            .floor("") // Hawserctl: the command line of all commands
            .check();
    }
}
