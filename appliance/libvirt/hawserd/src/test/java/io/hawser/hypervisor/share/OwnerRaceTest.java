package io.hawser.hypervisor.share;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.files.GuestFiles;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.hypervisor.tenant.Tenants;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two hosts that have read a vGPU's owner before either changes it. The broker compares owners as its interface
 * promises.
 */
class OwnerRaceTest {
    private static final UUID DOMAIN = UUID.randomUUID();
    private static final String SOURCE = UUID.randomUUID().toString();
    private static final String DESTINATION = UUID.randomUUID().toString();

    @TempDir
    Path folder;
    private final Map<String, String> owners = new TreeMap<>(); // owners of vGPUs, by name
    private HttpServer broker;
    private Host source;
    private Host destination;

    /** The parts of one hawserd. */
    private record Host(Shares shares, Provision provision) {}

    @BeforeEach
    void start() throws IOException {
        broker = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        broker.createContext("/", this::answer);
        broker.start();
        source = host(SOURCE);
        destination = host(DESTINATION);
    }

    @AfterEach
    void stop() {
        source.shares().close();
        destination.shares().close();
        broker.stop(0);
    }

    private Host host(String uuid) throws IOException {
        HawserdConfig config = HawserdConfig.read(Files.writeString(folder.resolve(uuid + ".conf"), """
            broker.url = "http://127.0.0.1:%d"
            region.folder = "%s"
            """.formatted(broker.getAddress().getPort(), folder)), true);
        Shares shares = new Shares(config::broker, Duration.ofSeconds(300));
        GuestFiles guests = new GuestFiles(Files.createDirectory(folder.resolve(uuid)));
        return new Host(shares, new Provision(shares, config.regions(0, 0), guests, config.network(), () -> uuid, null,
            Duration.ofMinutes(1)));
    }

    private synchronized void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        String name = path.substring(path.lastIndexOf('/') + 1);
        int status = 200;
        Object body = List.of();
        String method = exchange.getRequestMethod();
        if (method.equals("GET") && name.equals("vgpus")) {
            List<Object> all = new ArrayList<>();
            owners.forEach((vgpu, owner) -> all.add(shown(vgpu, owner)));
            body = all;
        } else if (name.equals("broker")) {
            body = Map.of("name", ""); // it is in no pool
        } else if (method.equals("PATCH") || method.equals("DELETE")) {
            String query = exchange.getRequestURI().getRawQuery();
            Item change = method.equals("DELETE") ? null
                : Item.of(Json.read(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)));
            String expected = change == null
                ? query.contains("expectedOwner=") ? URLDecoder.decode(query.replaceFirst(".*expectedOwner=", ""),
                    StandardCharsets.UTF_8) : null
                : change.has("expectedOwner") ? change.text("expectedOwner") : null;
            if (!owners.containsKey(name)) {
                status = 404;
            } else if (expected != null && !expected.equals(owners.get(name))) {
                status = 412;
            } else if (change == null) {
                owners.remove(name);
            } else {
                owners.put(name, change.item("owner").text("id"));
            }
            body = status == 200 && change != null ? shown(name, owners.get(name))
                : Map.of("detail", "status " + status);
        }
        byte[] bytes = Json.line(body).getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private static Map<String, Object> shown(String vgpu, String owner) {
        Map<String, Object> all = new HashMap<>(Map.of("name", vgpu, "owner", Map.of("kind", "domain", "id", owner),
            "memoryBytes", 0, "computeShare", 100, "mode", "shared", "gpus", "any", "carriers", List.of("tcp"),
            "maxSessions", 16, "sessions", 0, "tokens", 0));
        all.putAll(Map.of("state", "ready", "problem", ""));
        return all;
    }

    private static String owner(String host, String former) {
        return new Claim.Owner(DOMAIN, host, former).id();
    }

    private static Tenant tenant() {
        return new Tenants().hold(DOMAIN, "nomad", Duration.ofSeconds(300));
    }

    @Test
    void shouldEndAShareThatBothHostsOfAMigrationLose() throws Exception {
        owners.put("nomad", owner(DESTINATION, SOURCE));
        Shares.Picture first = source.shares().readPicture();
        Shares.Picture second = destination.shares().readPicture();
        assertTrue(source.provision().withdraw(tenant(), first, Provision.FileFate.GOES));
        assertEquals(owner(DESTINATION, ""), owners.get("nomad"));
        assertTrue(destination.provision().withdraw(tenant(), second, Provision.FileFate.GOES));
        assertEquals(Map.of(), owners);
    }

    @Test
    void shouldNotEndAShareThatHasJustBeenTakenOver() throws Exception {
        owners.put("nomad", owner(SOURCE, ""));
        Shares.Picture before = source.shares().readPicture();
        Claim claim = before.claim(DOMAIN, SOURCE).orElseThrow();
        destination.shares().give(claim, new Claim.Owner(DOMAIN, DESTINATION, SOURCE));
        source.provision().withdraw(tenant(), before, Provision.FileFate.GOES);
        assertEquals(Map.of("nomad", owner(DESTINATION, "")), owners);
    }

    @Test
    void shouldReportAnOwnerThatAnotherHostChanged() throws Exception {
        owners.put("nomad", owner(SOURCE, ""));
        Claim claim = source.shares().readPicture().claim(DOMAIN, SOURCE).orElseThrow();
        owners.put("nomad", owner(DESTINATION, ""));
        for (ShareException refused : List.of(
            assertThrows(ShareException.class, () -> source.shares().end(claim)),
            assertThrows(ShareException.class, () -> source.shares().give(claim, claim.owner())))) {
            assertEquals(ShareException.Reason.CHANGED, refused.reason());
        }
        assertEquals(Map.of("nomad", owner(DESTINATION, "")), owners);
    }
}
