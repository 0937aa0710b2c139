package io.hawser.cuda.generator;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.cuda.generator")
            .floor("emit", "yaml")
            .floor("model")
            .floor("c", "java")
            .floor("")
            .check();
    }
}
