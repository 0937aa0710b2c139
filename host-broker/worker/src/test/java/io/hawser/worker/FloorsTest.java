package io.hawser.worker;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.worker")
            .floor("memory", "jail")
            .floor("channel")
            .floor("channel.ring")
            .floor("channel.rdma", "channel.shm", "channel.tcp")
            .floor("control")
            .floor("swap")
            .floor("move")
            .floor("session")
            .floor("calls")
            .floor("")
            .check();
    }
}
