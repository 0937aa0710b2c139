package io.hawser.hypervisor.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class FabricAddressTest {
    @Test
    void shouldStayTheSameForADomain() {
        // Partitions and switches name these addresses, so a later version must not change them.
        UUID domain = UUID.fromString("360a25bd-9eb9-4286-ac80-54e49f81aee9");
        assertEquals("02:a0:29:2d:34:7f", FabricAddress.mac(domain));
        assertEquals("02:aa:30:6d:8d:86:79:cc", FabricAddress.nodeGuid(domain));
        assertEquals("02:aa:30:6d:8d:86:79:cd", FabricAddress.portGuid(domain));
    }

    @Test
    void shouldGiveFreeFunctionsTheGuidsOfTheAnsibleRole() {
        // hawser-functions of the role computes the same; ansible/lane/fabric.sh has the same values.
        assertEquals("02:e9:5a:8b:ca:96:b3:6c", FabricAddress.freeGuid("b8ce:f603:00e4:0001", 0, 0));
        assertEquals("02:e9:5a:8b:ca:96:b3:6d", FabricAddress.freeGuid("b8ce:f603:00e4:0001", 0, 1));
    }

    @Test
    void shouldDifferBetweenDomainsAndFreeFunctions() {
        Set<String> all = new HashSet<>();
        for (int i = 0; i < 1000; i++) {
            UUID domain = new UUID(0, i);
            assertTrue(all.add(FabricAddress.mac(domain)));
            assertTrue(all.add(FabricAddress.nodeGuid(domain)));
            assertTrue(all.add(FabricAddress.portGuid(domain)));
            assertTrue(all.add(FabricAddress.freeGuid("b8ce:f603:00e4:0001", i, 0)));
            assertTrue(all.add(FabricAddress.freeGuid("b8ce:f603:00e4:0001", i, 1)));
        }
        // Chosen locally, and no group address.
        assertTrue(all.stream().allMatch(address -> address.startsWith("02:")));
    }
}
