package io.hawser.hypervisor.libvirt;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.model.Driver;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import org.junit.jupiter.api.Test;

class LibvirtHotPlugTest {
    private static final UUID DOMAIN = UUID.fromString("360a25bd-9eb9-4286-ac80-54e49f81aee9");
    private static final long REGION = 64 << 20;
    private static final String RESERVED = "<qemu:arg value='-global'/><qemu:arg"
        + " value='pcie-root-port.pref64-reserve=%s'/>";

    private final LibvirtHotPlug hotPlug = new LibvirtHotPlug(null); // these tests do not call the hypervisor

    private static String xml(String machine, String devices, String arguments) {
        return """
            <domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
              <name>b</name>
              <uuid>%s</uuid>
              <description>a &lt; b &amp; "c"</description>
              <os><type arch='x86_64' machine='%s'>hvm</type></os>
              <devices>
                <controller type='pci' index='0' model='pcie-root'/>
            %s
                <hostdev mode='subsystem' type='pci'>
                  <source><address domain='0x0000' bus='0x02' slot='0x00' function='0x0'/></source>
                  <address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/>
                </hostdev>
              </devices>
              <qemu:commandline>%s</qemu:commandline>
            </domain>
            """.formatted(DOMAIN, machine, devices, arguments);
    }

    private static String port(int index) {
        return "    <controller type='pci' index='" + index + "' model='pcie-root-port'><address type='pci'"
            + " domain='0x0000' bus='0x00' slot='0x0" + index % 10 + "' function='0x0'/></controller>\n";
    }

    private static String disk(int bus) {
        return "    <disk type='file' device='disk'><target dev='vda' bus='virtio'/><address type='pci'"
            + " domain='0x0000' bus='0x%02x' slot='0x00' function='0x0'/></disk>\n".formatted(bus);
    }

    private String refusal(String xml) {
        return hotPlug.refusal(new DomainView(DOMAIN, "b", Driver.QEMU, 1, true, xml, xml), REGION).orElse("");
    }

    @Test
    void shouldTakeTheDeviceInAMachinePcAsItIs() {
        String xml = xml("pc-i440fx-7.2", "", "");
        assertEquals("", refusal(xml));
        assertSame(xml, hotPlug.prepared(xml, REGION));
    }

    @Test
    void shouldRefuseQ35WithoutAFreePort() {
        String xml = xml("pc-q35-7.2", port(1) + disk(1), RESERVED.formatted("128M"));
        assertTrue(refusal(xml).contains("no free pcie-root-port"), refusal(xml));
        assertTrue(refusal(xml).endsWith("run hawserctl prepare b --region 64M, then stop and start the domain"));
    }

    @Test
    void shouldRefuseQ35ThatReservesTooLittle() {
        for (String arguments : List.of("", RESERVED.formatted("64M"), RESERVED.formatted("nonsense"),
            RESERVED.formatted("1G") + RESERVED.formatted("32M"))) {
            String why = refusal(xml("pc-q35-7.2", port(1), arguments));
            assertTrue(why.contains("must be at least 128M"), why);
        }
    }

    @Test
    void shouldTakeTheDeviceInAPreparedQ35() {
        for (String arguments : List.of(RESERVED.formatted("128M"), RESERVED.formatted("134217728"),
            RESERVED.formatted("1g"), "<qemu:arg value='-global'/><qemu:arg"
                + " value='driver=pcie-root-port,property=pref64-reserve,value=128M'/>")) {
            assertEquals("", refusal(xml("q35", port(1) + disk(1) + port(2), arguments)));
        }
    }

    @Test
    void shouldTakeAPortsOwnReservation() {
        String override = """
            <qemu:override><qemu:device alias='pci.2'><qemu:frontend>
            <qemu:property name='pref64-reserve' type='unsigned' value='%s'/>
            </qemu:frontend></qemu:device></qemu:override></domain>""";
        String xml = xml("q35", port(1) + port(2), RESERVED.formatted("64M")).replace("</domain>",
            override.formatted("134217728"));
        assertEquals("", refusal(xml));
        String small = xml("q35", port(2), RESERVED.formatted("1G"))
            .replace("</domain>", override.formatted("1048576"));
        assertTrue(refusal(small).contains("is 1M"), refusal(small));
        assertEquals("", refusal(hotPlug.prepared(small, REGION)));
    }

    @Test
    void shouldNotUseAPortWithoutHotPlug() {
        String xml = xml("q35", port(1).replace("<address", "<target chassis='1' hotplug='off'/><address"),
            RESERVED.formatted("128M"));
        assertTrue(refusal(xml).contains("no free pcie-root-port"), refusal(xml));
    }

    @Test
    void shouldRefuseOtherMachinesAndThoseThatDoNotRun() {
        assertTrue(refusal(xml("virt-7.2", "", "")).contains("machine virt-7.2"));
        String xml = xml("pc", "", "");
        assertTrue(hotPlug.refusal(new DomainView(DOMAIN, "b", Driver.QEMU, -1, false, null, xml), REGION)
            .orElse("").contains("does not run"));
        assertTrue(hotPlug.refusal(new DomainView(DOMAIN, "b", Driver.XEN, 1, true, xml, xml), REGION)
            .orElse("").contains("tcp"));
    }

    @Test
    void shouldPrepareWhateverDefinitionOnceAndKeepTheRest() throws Exception {
        Random random = new Random(35);
        for (int round = 0; round < 500; round++) {
            StringBuilder devices = new StringBuilder();
            List<Integer> ports = new ArrayList<>();
            for (int index = 1; index < 1 + random.nextInt(5); index++) {
                devices.append(port(index));
                ports.add(index);
            }
            ports.forEach(bus -> devices.append(random.nextBoolean() ? disk(bus) : ""));
            String xml = xml(random.nextInt(5) == 0 ? "pc" : "q35", devices.toString(),
                random.nextBoolean() ? RESERVED.formatted(1 << random.nextInt(30)) : "");
            String device = random.nextBoolean() ? hotPlug.withDevice(xml, DOMAIN, REGION) : xml;
            String prepared = hotPlug.prepared(device, REGION);
            assertSame(prepared, hotPlug.prepared(prepared, REGION), prepared);
            assertEquals("", refusal(hotPlug.withoutDevice(prepared)), prepared);
            assertTrue(prepared.contains("<description>a &lt; b &amp; \"c\"</description>"), prepared);
            assertEquals(count(xml, "<disk"), count(prepared, "<disk"), prepared);
            assertEquals(DOMAIN, DomainXml.parse(prepared).uuid());
        }
    }

    private static int count(String text, String part) {
        return (text.length() - text.replace(part, "").length()) / part.length();
    }

    @Test
    void shouldPutTheDeviceOnceAndTakeItOutAgain() throws Exception {
        for (String machine : List.of("pc", "q35")) {
            for (String devices : List.of("", port(1), port(1) + disk(1))) {
                String xml = xml(machine, devices, "");
                String with = hotPlug.withDevice(xml, DOMAIN, REGION);
                assertSame(with, hotPlug.withDevice(with, DOMAIN, REGION));
                assertEquals(REGION, DomainXml.parse(with).device().orElseThrow().sizeBytes());
                // On a PC's bus libvirt chooses the address by itself.
                assertEquals(machine.equals("q35"), with.substring(with.indexOf("<shmem")).contains("<address"), with);
                String larger = hotPlug.withDevice(with, DOMAIN, 2 * REGION);
                assertEquals(2 * REGION, DomainXml.parse(larger).device().orElseThrow().sizeBytes());
                assertEquals(1, count(larger, "<shmem"));
                String without = hotPlug.withoutDevice(larger);
                assertFalse(without.contains("<shmem"));
                assertSame(without, hotPlug.withoutDevice(without));
            }
        }
    }

    @Test
    void shouldLeaveOtherDevicesOfSharedMemory() {
        String other = "<shmem name='other'><model type='ivshmem-plain'/><size unit='M'>4</size></shmem>";
        String xml = xml("pc", other, "");
        String with = hotPlug.withDevice(xml, DOMAIN, REGION);
        assertEquals(2, count(with, "<shmem"));
        assertEquals(1, count(hotPlug.withoutDevice(with), "<shmem"));
    }
}
