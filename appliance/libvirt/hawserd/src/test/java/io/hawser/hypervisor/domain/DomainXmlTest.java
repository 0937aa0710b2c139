package io.hawser.hypervisor.domain;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DomainXmlTest {
    private static final UUID ID = UUID.fromString("6f2c0e1a-9a34-4c1e-8f55-0123456789ab");

    @TempDir
    Path folder;

    private static Optional<Wish> wish(String metadata, String devices) throws WishException {
        return DomainXml.parse(Xml.domain(ID, "render", metadata, devices)).wish(Driver.QEMU);
    }

    private static String refusal(String metadata, String devices) {
        return assertThrows(WishException.class, () -> wish(metadata, devices)).getMessage();
    }

    @Test
    void shouldReadWhatADomainAsksFor() throws WishException {
        Wish wish = wish(Xml.vgpu("name='r' memory='16G' share='50' mode='exclusive' gpus='0,1' sessions='8'"
            + " transport='shm' region='32M' required='no'"), Xml.shmem(ID, 32)).orElseThrow();
        assertEquals(
            new Wish("r", 16L << 30, 50, Wish.Mode.EXCLUSIVE, "0,1", false, 8, Wish.Transport.SHM, 32L << 20, false,
                false),
            wish);
        assertTrue(wish(Xml.vgpu("memory='1G' swappable='yes'"), "").orElseThrow().swappable());
        assertFalse(wish(Xml.vgpu("memory='1G' swappable='no'"), "").orElseThrow().swappable());
        DomainXml xml = DomainXml.parse(Xml.domain(ID, "render", "", Xml.shmem(ID, 32)));
        assertEquals("render", xml.name());
        assertEquals(ID, xml.uuid());
        assertEquals("pc-q35-7.2", xml.machine());
        assertEquals(new Shmem("hawser-" + ID, 32L << 20, "ivshmem-plain", "ua-hawser"), xml.device().orElseThrow());
    }

    @Test
    void shouldTakeADeviceAloneForTheDefaults() throws WishException {
        Wish wish = wish("", Xml.shmem(ID, 16)).orElseThrow();
        assertEquals(
            new Wish("", 0, 100, Wish.Mode.SHARED, "any", false, 16, Wish.Transport.SHM, 16L << 20, true, true),
            wish);
        assertTrue(wish("", "").isEmpty());
        assertTrue(wish("", Xml.shmem(UUID.randomUUID(), 16)).isEmpty(), "another's region asks for nothing");
    }

    @Test
    void shouldGiveDomainsOfXenTcp() throws WishException {
        DomainXml xml = DomainXml.parse(Xml.domain(ID, "render", Xml.vgpu("memory='1G'"), ""));
        assertEquals(Wish.Transport.TCP, xml.wish(Driver.XEN).orElseThrow().transport());
        assertEquals(Wish.Transport.SHM, xml.wish(Driver.QEMU).orElseThrow().transport());
        assertThrows(WishException.class, () -> DomainXml.parse(Xml.domain(ID, "render",
            Xml.vgpu("transport='shm'"), "")).wish(Driver.XEN));
    }

    @Test
    void shouldNameTheInvalidAttribute() {
        assertTrue(refusal(Xml.vgpu("memry='1G'"), "").contains("no attribute memry"));
        assertTrue(refusal(Xml.vgpu("share='101'"), "").contains("share must be 1 to 100: share=101"));
        assertTrue(refusal(Xml.vgpu("swappable='true'"), "").contains("swappable must be yes or no: swappable=true"));
        assertTrue(refusal(Xml.vgpu("region='48M'"), "").contains("power of two from 4M"));
        assertTrue(refusal(Xml.vgpu("region='32M'"), Xml.shmem(ID, 64)).contains("region=32M <shmem>'s size=64M"));
        assertTrue(refusal(Xml.vgpu("transport='tcp'"), Xml.shmem(ID, 64)).contains("there must be no device"));
        assertTrue(refusal("<hawser:gpu xmlns:hawser='urn:hawser:vgpu:1'/>", "").contains("must be one <vgpu>"));
        assertTrue(refusal("<h:vgpu xmlns:h='urn:hawser:vgpu:1'><h:memory>1G</h:memory></h:vgpu>", "")
            .contains("no element h:memory"));
        assertTrue(refusal("", Xml.shmem(ID, 64).replace("plain", "doorbell")).contains("ivshmem-plain"));
        assertTrue(refusal("", Xml.shmem(ID, 48)).contains("power of two"));
        assertTrue(refusal("", Xml.shmem(ID, 32).replace(ID.toString(), ID.toString().toUpperCase(Locale.ROOT)))
            .contains("lower case"));
    }

    @Test
    void shouldReadSizesAsLibvirtDoes() throws WishException {
        String device = Xml.shmem(ID, 16);
        for (String size : new String[] {"<size>16777216</size>", "<size unit='KiB'>16384</size>",
            "<size unit='bytes'>16777216</size>", "<size unit='k'>16384</size>"}) {
            assertEquals(16L << 20, wish("", device.replace("<size unit='M'>16</size>", size)).orElseThrow()
                .regionBytes(), size);
        }
        for (String size : new String[] {"", "<size unit='X'>16</size>", "<size>-5</size>",
            "<size unit='G'>9999999999999999999</size>"}) {
            assertThrows(WishException.class, () -> wish("", device.replace("<size unit='M'>16</size>", size)), size);
        }
    }

    @Test
    void shouldRefuseWhatIsNoDomain() {
        String good = Xml.domain(ID, "render", "", "");
        for (String bad : new String[] {"", "x", "<domain/>", "<network><name>a</name></network>",
            good.replace(ID.toString(), "1-1-1-1-1"), good.replace("<name>render</name>", ""), good + good,
            good.substring(0, good.length() - 10)}) {
            assertThrows(WishException.class, () -> DomainXml.parse(bad), bad);
        }
    }

    @Test
    void shouldReadNothingFromOutside() throws Exception {
        Path secret = Files.writeString(folder.resolve("secret"), "geheim");
        String good = Xml.domain(ID, "&x;", "", "");
        for (String type : new String[] {"<!DOCTYPE domain [<!ENTITY x SYSTEM 'file://" + secret + "'>]>",
            "<!DOCTYPE domain [<!ENTITY x 'y'>]>", "<!DOCTYPE domain SYSTEM 'file://" + secret + "'>",
            "<!DOCTYPE domain>"}) {
            WishException refused = assertThrows(WishException.class, () -> DomainXml.parse(type + good), type);
            assertFalse(refused.getMessage().contains("geheim"));
        }
        String include = Xml.domain(ID, "a", "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' parse='text' "
            + "href='file://" + secret + "'/>", "");
        assertFalse(DomainXml.parse(include).write().contains("geheim"));
    }

    @Test
    void shouldBoundWhatItReads() {
        String big = Xml.domain(ID, "a", "<!--" + "x".repeat(DomainXml.MAX_BYTES) + "-->", "");
        assertTrue(assertThrows(WishException.class, () -> DomainXml.parse(big)).getMessage().contains("at most"));
        String deep = Xml.domain(ID, "a", "<a>".repeat(100_000) + "</a>".repeat(100_000), "");
        assertThrows(WishException.class, () -> DomainXml.parse(deep));
    }

    @Test
    void shouldSurviveAnyText() {
        Random random = new Random(7);
        String good = Xml.domain(ID, "render", Xml.vgpu("memory='1G' region='32M'"), Xml.shmem(ID, 32));
        int read = 0;
        for (int i = 0; i < 20_000; i++) {
            StringBuilder text = new StringBuilder(good);
            for (int change = random.nextInt(4); change >= 0 && !text.isEmpty(); change--) {
                int at = random.nextInt(text.length());
                switch (random.nextInt(4)) {
                    case 0 -> text.setCharAt(at, (char) random.nextInt(0x100));
                    case 1 -> text.delete(at, Math.min(text.length(), at + random.nextInt(40)));
                    case 2 -> text.insert(at, text.substring(at, Math.min(text.length(), at + random.nextInt(40))));
                    default -> text.setLength(Math.max(1, at));
                }
            }
            try {
                // Any text gives a result or a reason, never another exception.
                DomainXml xml = DomainXml.parse(text.toString());
                xml.wish(random.nextBoolean() ? Driver.QEMU : Driver.XEN);
                xml.status();
                read++;
            } catch (WishException e) {
                assertFalse(e.getMessage().isBlank());
                assertTrue(e.getMessage().codePoints().noneMatch(c -> c == '\n'), e.getMessage());
            }
        }
        assertTrue(read > 100, "some are still good: " + read);
    }

    @Test
    void shouldReadWhatItWrites() throws WishException {
        Random random = new Random(11);
        for (int i = 0; i < 2_000; i++) {
            boolean tcp = random.nextBoolean();
            Wish wish = new Wish(random.nextBoolean() ? "" : "n" + random.nextInt(), random.nextLong(1L << 40),
                1 + random.nextInt(100), random.nextBoolean() ? Wish.Mode.SHARED : Wish.Mode.EXCLUSIVE,
                random.nextBoolean() ? "any" : random.nextInt(8) + ",GPU-" + UUID.randomUUID(),
                random.nextBoolean(), 1 + random.nextInt(64), tcp ? Wish.Transport.TCP : Wish.Transport.SHM,
                tcp ? 0 : (256L << 20) << random.nextInt(5), random.nextBoolean(), false);
            DomainXml xml = DomainXml.parse(Xml.domain(ID, "a", "", ""));
            xml.setWish(wish);
            assertEquals(wish, DomainXml.parse(xml.write()).wish(Driver.QEMU).orElseThrow());
            assertEquals(wish, Wish.of(wish.attributes(), Driver.QEMU));
            xml.setWish(null);
            assertTrue(DomainXml.parse(xml.write()).wish(Driver.QEMU).isEmpty());
            assertTrue(xml.write().contains("libosinfo.org"), "others' metadata stays");
        }
    }

    @Test
    void shouldEscapeStatuses() throws WishException {
        VgpuStatus status = new VgpuStatus(VgpuStatus.State.REFUSED, "a", "shm", Instant.now(),
            "\"<&>' \u0000\n\ud800 \u00e4", "metadata");
        String element = DomainXml.element("status", status.attributes());
        String placed = element.replace("<status", "<s:status xmlns:s='" + VgpuStatus.NAMESPACE + "'");
        VgpuStatus read = DomainXml.parse(Xml.domain(ID, "a", placed, "")).status().orElseThrow();
        assertEquals("\"<&>' ??? \u00e4", read.reason());
        assertEquals(status.since(), read.since());
        assertEquals(Optional.empty(), DomainXml.parse(Xml.domain(ID, "a", "<s:x xmlns:s='" + VgpuStatus.NAMESPACE
            + "' state='odd'/>", "")).status());
    }

    @Test
    void shouldNameTheGuestsFileOnce() throws WishException {
        DomainXml xml = DomainXml.parse(Xml.domain(ID, "a", "", ""));
        xml.setGuestFile("/var/lib/a.toml");
        xml.setGuestFile("/var/lib/b.toml");
        DomainXml read = DomainXml.parse(xml.write());
        assertEquals(Optional.of("/var/lib/b.toml"), read.guestFile());
        assertEquals(1, xml.write().split("<sysinfo", -1).length - 1);
        assertTrue(xml.write().indexOf("<sysinfo") < xml.write().indexOf("<os"));
        read.setGuestFile(null);
        assertEquals(Optional.empty(), read.guestFile());
        assertFalse(read.write().contains("sysinfo"));
    }

    @Test
    void shouldMakeNamesThatTheBrokerTakes() {
        assertEquals("web-1.x_y", Wish.standardName("web-1.x_y", ID, false));
        assertEquals("web-1-6f2c0e1a", Wish.standardName("web 1", ID, true));
        assertEquals("domain", Wish.standardName("???", ID, false));
        assertEquals("b-c", Wish.standardName("--b/c", ID, false));
        assertEquals(63, Wish.standardName("a".repeat(200), ID, true).length());
        assertTrue(Wish.standardName("a".repeat(200), ID, true).endsWith("-6f2c0e1a"));
    }
}
