package io.hawser.hypervisor.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.ClientException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HawserdConfigTest {
    private static final Path EXAMPLE = Path.of("src/main/conf/hawserd.conf");
    private static final Path MANUAL = Path.of("../../distribution/share/man/man5/hawserd.conf.5");

    @TempDir
    Path folder;

    private HawserdConfig read(String text) throws IOException {
        return HawserdConfig.read(Files.writeString(folder.resolve("conf"), text), true);
    }

    @Test
    void shouldHaveEachSettingInTheExampleAndTheManual() throws IOException {
        String example = Files.readString(EXAMPLE);
        String manual = Files.readString(MANUAL).replace("\\-", "-");
        for (String name : HawserdSetting.NAMES) {
            assertTrue(example.contains("#" + name + " = \""), "the example has no " + name);
            assertTrue(manual.contains(name), "the manual has no " + name);
        }
        // The example stays valid with all of its settings enabled.
        HawserdConfig all = read(example.replaceAll("(?m)^#(\\S+ = )", "$1"));
        assertEquals(HawserdSetting.NAMES.size(), all.shown().size());
        assertEquals(List.of("qemu:///system"), all.libvirtUris());
        assertEquals(0, read(example).shown().size(), "the example changes nothing");
    }

    @Test
    void shouldNameTheInvalidSetting() {
        for (String line : List.of("nothing = \"x\"", "region.mode = \"9\"", "region.mode = \"0666\"",
            "region.mode = \"0604\"", "socket.path = \"s\"",
            "broker.state-dir = \"x\"", "guest.broker", "region.mode = 0660", "hook.timeout = \"14\"",
            "hook.timeout = \"601\"", "hook.timeout = \"22s\"")) {
            String reason = assertThrows(ClientException.class, () -> read(line), line).getMessage();
            assertTrue(reason.contains(folder.toString()), reason);
        }
        assertThrows(ClientException.class, () -> HawserdConfig.read(folder.resolve("none"), true));
        assertEquals(0, HawserdConfig.read(folder.resolve("none"), false).shown().size());
    }

    @Test
    void shouldAnswerHooksBeforeTheyGiveUp() throws IOException {
        assertEquals(Duration.ofSeconds(22), read("").hookTimeout());
        assertEquals(Duration.ofSeconds(190), read("hook.timeout = \"190\"").hookTimeout());
    }

    @Test
    void shouldTakeCommasBetweenDrivers() throws IOException {
        assertEquals(List.of("qemu:///system", "xen:///system"),
            read("libvirt.uri = \"qemu:///system, xen:///system\"").libvirtUris());
    }
}
