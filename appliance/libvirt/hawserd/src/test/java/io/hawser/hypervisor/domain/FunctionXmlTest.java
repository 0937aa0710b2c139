package io.hawser.hypervisor.domain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class FunctionXmlTest {
    private static final UUID DOMAIN = UUID.fromString("360a25bd-9eb9-4286-ac80-54e49f81aee9");
    private static final String OTHERS = """
        <interface type='network'><mac address='52:54:00:00:00:01'/><source network='default'/></interface>
        <hostdev mode='subsystem' type='pci' managed='yes'>
          <source><address domain='0x0000' bus='0x02' slot='0x00' function='0x0'/></source>
          <address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/>
        </hostdev>
        <hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/></source></hostdev>
        """;

    private static DomainXml xml(String devices) throws WishException {
        return DomainXml.parse(Xml.domain(DOMAIN, "b", "", devices));
    }

    private static Wish wish(Map<String, String> attributes) throws WishException {
        Map<String, String> all = new java.util.HashMap<>(attributes);
        all.put("transport", "rdma");
        return Wish.of(all, Driver.QEMU);
    }

    @Test
    void shouldAddAndRemoveARoceFunction() throws WishException {
        DomainXml xml = xml(OTHERS);
        FunctionXml functions = new FunctionXml(xml);
        Wish roce = wish(Map.of("network", "roce"));
        assertFalse(functions.has(roce));
        functions.set(roce, Driver.QEMU, "");
        functions.set(roce, Driver.QEMU, "");
        String text = xml.write();
        assertTrue(functions.has(roce));
        assertEquals(2, text.split("<interface", -1).length - 1, text);
        assertTrue(text.contains("<interface type=\"network\"><mac address=\"" + FabricAddress.mac(DOMAIN)
            + "\"/><source network=\"roce\"/><alias name=\"ua-hawser-rdma\"/></interface>"), text);
        functions.set(wish(Map.of("network", "other")), Driver.QEMU, "");
        assertFalse(xml.write().contains("\"roce\""), "replaced");
        functions.set(null, Driver.QEMU, "");
        assertEquals(xml(OTHERS).write(), xml.write());
    }

    @Test
    void shouldAddAndRemoveAnInfinibandFunction() throws WishException {
        for (Driver driver : Driver.values()) {
            DomainXml xml = xml(OTHERS);
            FunctionXml functions = new FunctionXml(xml);
            Wish infiniband = wish(Map.of("network", "ib", "function", "0000:5e:00.2"));
            assertFalse(functions.has(infiniband));
            functions.set(infiniband, driver, "");
            assertTrue(functions.has(infiniband));
            assertEquals(Set.of("0000:02:00.0", "0000:5e:00.2"), functions.hostDevices());
            assertEquals(Optional.of("0000:5e:00.2"), functions.address("0000:5e:00.2"));
            assertEquals(driver == Driver.QEMU, xml.write().contains(FunctionXml.ALIAS), "libxl keeps no aliases");
            // The text for detach-device names the host's device alone.
            assertEquals("<hostdev managed=\"yes\" mode=\"subsystem\" type=\"pci\"><source><address bus=\"0x5e\""
                + " domain=\"0x0000\" function=\"0x2\" slot=\"0x00\"/></source></hostdev>",
                functions.text("0000:5e:00.2").orElseThrow());
            functions.set(null, driver, "0000:5e:00.2");
            assertEquals(xml(OTHERS).write(), xml.write());
        }
    }

    @Test
    void shouldRecognizeTheFunctionThatLibvirtChose() throws WishException {
        // The live XML of libvirt 9 shows a function of a network in this form.
        DomainXml xml = xml("<interface type='hostdev' managed='yes'><mac address='" + FabricAddress.mac(DOMAIN)
            .toUpperCase(java.util.Locale.ROOT) + "'/><driver name='vfio'/><source><address type='pci' domain='0x0000'"
            + " bus='0x3b' slot='0x00' function='0x1'/></source><alias name='ua-hawser-rdma'/><address type='pci'"
            + " domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></interface>");
        FunctionXml functions = new FunctionXml(xml);
        assertTrue(functions.has(wish(Map.of("network", "roce"))));
        assertEquals(Set.of("0000:3b:00.1"), functions.hostDevices());
        assertEquals(Optional.empty(), functions.address(""), "an Ethernet function has no GUIDs");
        String text = functions.text("").orElseThrow();
        assertTrue(text.contains("bus=\"0x3b\"") && !text.contains("0x01\""), text);
    }

    @Test
    void shouldReadTheWish() throws WishException {
        Wish wish = wish(Map.of("network", "ib", "function", "0000:5e:00.2"));
        assertEquals(Map.of("transport", "rdma", "network", "ib", "function", "0000:5e:00.2"), wish.attributes());
        assertEquals(wish, Wish.of(wish.attributes(), Driver.XEN));
        assertEquals("tcp", wish.carrier());
        assertFalse(wish(Map.of()).hasNetwork());
        for (Map<String, String> wrong : List.of(Map.of("network", "a/b"), Map.of("network", "-"),
            Map.of("function", "0000:5e:00.2"), Map.of("network", "ib", "function", "5e:00.2"),
            Map.of("network", "ib", "function", "../../0000:5e:00.2"), Map.of("region", "64M"))) {
            assertThrows(WishException.class, () -> wish(wrong), wrong.toString());
        }
        assertTrue(assertThrows(WishException.class, () -> Wish.of(Map.of("transport", "tcp", "network", "roce"),
            Driver.QEMU)).getMessage().contains("network is only for transport rdma"));
        assertTrue(assertThrows(WishException.class, () -> Wish.of(Map.of("transport", "ib"), Driver.QEMU))
            .getMessage().contains("transport must be one of shm, tcp, rdma: transport=ib"));
    }

    @Test
    void shouldReadNetworks() throws WishException {
        assertEquals(new NetworkXml("hostdev", List.of("ens1"), List.of("0000:3b:00.1")), NetworkXml.parse("""
            <network connections='1'><name>roce</name><forward mode='hostdev' managed='yes'><pf dev='ens1'/>
            <address type='pci' domain='0x0000' bus='0x3b' slot='0x00' function='0x1'/></forward></network>"""));
        assertEquals("nat", NetworkXml.parse("<network><name>d</name><forward/></network>").mode());
        assertEquals("", NetworkXml.parse("<network><name>d</name></network>").mode());
    }
}
