package io.hawser.hypervisor;

import io.hawser.floors.Floors;
import org.junit.jupiter.api.Test;

class FloorsTest {
    @Test
    void shouldUseOnlyPackagesOnLowerFloors() {
        Floors.of("io.hawser.hypervisor")
            .floor("model", "log")
            .floor("domain", "broker", "files", "tenant") // libvirt's side as interfaces, and what hawserd acts on
            .floor("libvirt", "xen", "share")
            .floor("reconcile", "config")
            .floor("hook", "command") // the requests
            .floor("door")
            .floor("") // Daemon: assembly
            .check();
    }
}
