package io.hawser.broker;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.broker")
            .floor("model", "posix", "machine") // values, system calls, properties of the machine
            .floor("config", "nvml", "token")
            .floor("jail", "store", "access")
            .floor("pool", "vgpu")
            .floor("ipc", "turns", "image")
            .floor("ledger")
            .floor("swap")
            .floor("session")
            .floor("move")
            .floor("status", "audit")
            .floor("door", "web")
            .floor("region")
            .floor("admin") // the use cases of operators
            .floor("") // Broker: assembly
            .floor("view", "health")
            .floor("events", "history", "metrics")
            .floor("rest")
            .floor("stream")
            .floor("app")
            .check();
    }
}
