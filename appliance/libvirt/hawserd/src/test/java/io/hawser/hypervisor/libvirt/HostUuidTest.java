package io.hawser.hypervisor.libvirt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.domain.HypervisorException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HostUuidTest {
    private static final String OF_XEN = "<capabilities>\n  <host>\n    <cpu>\n      <arch>x86_64</arch>\n";

    @TempDir
    Path folder;

    private Path file(String name, String text) throws IOException {
        return Files.writeString(folder.resolve(name), text);
    }

    @Test
    void shouldTakeTheHostsUuidFromCapabilities() throws Exception {
        String capabilities = "<capabilities>\n  <host>\n    <uuid>11111111-1111-4111-8111-11111111111A</uuid>\n";
        assertEquals("11111111-1111-4111-8111-11111111111a",
            HostUuid.of(capabilities, List.of(file("dmi", "22222222-1111-4111-8111-111111111111\n"))));
    }

    @Test
    void shouldUseTheMachinesUuidWhenTheDriverReportsNone() throws Exception {
        Path dmi = file("dmi", "4C4C4544-0051-4410-8052-B4C04F4E3132\n");
        Path machine = file("machine", "0123456789abcdef0123456789ABCDEF\n");
        assertEquals("4c4c4544-0051-4410-8052-b4c04f4e3132", HostUuid.of(OF_XEN, List.of(dmi, machine)));
        assertEquals("01234567-89ab-cdef-0123-456789abcdef", HostUuid.of(OF_XEN, List.of(machine, dmi)));
    }

    @Test
    void shouldSkipUnconfiguredFirmware() throws Exception {
        Path machine = file("machine", "0123456789abcdef0123456789abcdef\n");
        for (String nothing : List.of("00000000-0000-0000-0000-000000000000\n",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF\n",
            "", "Not Settable\n")) {
            assertEquals("01234567-89ab-cdef-0123-456789abcdef",
                HostUuid.of(OF_XEN, List.of(file("dmi", nothing), folder.resolve("none"), machine)), nothing);
        }
    }

    @Test
    void shouldNameTheSearchedFiles() {
        HypervisorException refused = assertThrows(HypervisorException.class,
            () -> HostUuid.of(OF_XEN, List.of(folder.resolve("dmi"), folder.resolve("machine-id"))));
        assertTrue(refused.getMessage().contains(folder + "/dmi and " + folder + "/machine-id"), refused.getMessage());
    }
}
