package io.hawser.hypervisor.share;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.net.httpserver.HttpServer;
import io.hawser.client.Endpoint;
import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.model.Wish;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The GPU's domain, whose broker finds regions by the tags in its devices. Each device maps the file that it was made
 * of.
 */
class GpuDomainTest {
    private static final UUID TENANT = UUID.fromString("11111111-2222-4333-8444-555555555555");
    private static final Duration LONG = Duration.ofMinutes(5);
    private static final int REGION_BYTES = 4 << 20;
    private static final Claim CLAIM = new Claim("render", new Claim.Owner(TENANT, "host", ""), 0, 100, "shared", "any",
        false, List.of("shm"), 2, 0, 0, "placed", "", false);
    private static final Wish WISH = new Wish("render", 0, 100, Wish.Mode.SHARED, "any", false, 2,
        Wish.Transport.SHM, REGION_BYTES, true, false);
    private static final Pattern TAG = Pattern.compile("\"path\":\"ivshmem:([0-9a-f]{32})\"");

    @TempDir
    Path folder;
    private final Devices devices = new Devices();
    private HttpServer broker;
    private Shares shares;
    private Path file;

    /** The domain as libvirt shows it, with at most the device of the one tenant. */
    private final class Devices implements HotPlug {
        final List<String> calls = new ArrayList<>();
        /** The file behind the domain's device, even after a rename; null for none. */
        volatile Path device;
        /** The number of requests after which the guest gives the device back. */
        int stubborn;

        @Override
        public boolean lend(String domain, UUID tenant, long regionBytes) {
            calls.add("lend");
            if (device != null) {
                return false;
            }
            device = file;
            return true;
        }

        @Override
        public void takeBack(String domain, UUID tenant) {
            calls.add("take back");
            device = stubborn-- > 0 ? device : null;
        }

        @Override
        public Optional<String> refusal(DomainView domain, long regionBytes) {
            throw new AssertionError();
        }

        @Override
        public void plug(UUID domain, long regionBytes, Duration timeout, Consumer<String> progress) {
            throw new AssertionError();
        }

        @Override
        public void unplug(UUID domain, Duration timeout, Consumer<String> progress) {
            throw new AssertionError();
        }

        @Override
        public String withDevice(String inactiveXml, UUID domain, long regionBytes) {
            throw new AssertionError();
        }

        @Override
        public String withoutDevice(String inactiveXml) {
            throw new AssertionError();
        }

        @Override
        public String prepared(String inactiveXml, long regionBytes) {
            throw new AssertionError();
        }
    }

    @BeforeEach
    void setUp() throws IOException {
        file = made("region");
        broker = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        broker.createContext("/api/v1/regions", exchange -> {
            String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
            var tag = TAG.matcher(body);
            boolean found = tag.find() && devices.device != null && carries(devices.device, tag.group(1));
            byte[] answer = (found ? "{}" : "{\"error\":\"an ivshmem device must carry the region's tag\"}")
                .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(found ? 201 : 409, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        broker.start();
        URI url = URI.create("http://127.0.0.1:" + broker.getAddress().getPort());
        shares = new Shares(() -> new Endpoint(url, Map.of(), "nobody", null), LONG);
    }

    @AfterEach
    void tearDown() {
        shares.close();
        broker.stop(0);
    }

    private Path made(String name) throws IOException {
        return Files.write(folder.resolve(name), new byte[REGION_BYTES]);
    }

    private static boolean carries(Path device, String tag) throws IOException {
        byte[] page = new byte[4096];
        try (var in = Files.newInputStream(device)) {
            assertEquals(page.length, in.readNBytes(page, 0, page.length));
        }
        return java.util.HexFormat.of().formatHex(page).contains(tag);
    }

    private void serve() throws ShareException {
        new GpuDomain("gpu", devices, LONG).serve(shares, CLAIM, "hawser-" + TENANT, TENANT, file, WISH);
    }

    @Test
    void shouldServeARegionThatTheDomainHasAlready() throws Exception {
        devices.device = file;
        serve();
        assertEquals(List.of("lend"), devices.calls);
    }

    @Test
    void shouldReplaceADeviceOfAFileThatIsGone() throws Exception {
        devices.device = made("gone");
        devices.stubborn = 2;
        serve();
        assertEquals(file, devices.device);
        assertEquals(List.of("lend", "take back", "lend", "take back", "lend", "take back", "lend"), devices.calls);
    }
}
