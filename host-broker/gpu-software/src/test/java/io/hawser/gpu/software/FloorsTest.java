package io.hawser.gpu.software;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.gpu.software")
            .floor("ptx", "exec", "image", "work", "nccl")
            .floor("dnn")
            .floor("compile", "math")
            .floor("device")
            .floor("")
            .check();
    }
}
