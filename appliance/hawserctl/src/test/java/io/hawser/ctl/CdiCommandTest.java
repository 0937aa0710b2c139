package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.ctl.command.ExitCode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code hawserctl cdi} with a stand-in for the broker's REST interface. */
class CdiCommandTest {
    private static final String SECRET = "0123456789abcdef";

    @TempDir
    Path folder;

    private final List<String> changes = new CopyOnWriteArrayList<>();
    private final List<Map<String, Object>> tokens = new CopyOnWriteArrayList<>();
    private final List<Map<String, Object>> regions = new CopyOnWriteArrayList<>();
    private volatile List<String> carriers = List.of("tcp", "shm");
    private volatile String name = "";
    private volatile String endpoint = "127.0.0.1:7654";
    private HttpServer broker;

    private record Ended(int exitCode, String out, String err) {}

    @BeforeEach
    void start() throws IOException {
        broker = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        broker.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath().substring("/api/v1/".length());
            byte[] body = exchange.getRequestBody().readAllBytes();
            Object answer = exchange.getRequestMethod().equals("GET") ? read(path)
                : change(exchange.getRequestMethod(), path, body);
            send(exchange, answer);
        });
        broker.start();
        Files.createDirectories(folder.resolve("lib/guest"));
        Files.createDirectories(folder.resolve("bin"));
        for (String file : new String[] {"libcuda.so.1", "libhawser-audit.so"}) {
            Files.createFile(folder.resolve("lib/guest").resolve(file));
        }
        Files.createFile(folder.resolve("bin/hawser"),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwxr-xr-x")));
    }

    @AfterEach
    void stop() {
        broker.stop(0);
    }

    private static void send(HttpExchange exchange, Object answer) throws IOException {
        byte[] bytes = Json.line(answer == null ? Map.of("detail", "there is none") : answer)
            .getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(answer == null ? 404 : 200, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private Object read(String path) {
        return switch (path) {
            case "broker" -> Map.of("guestEndpoint", endpoint, "guestTlsEndpoint", "0.0.0.0:7656", "name", name);
            case "vgpus/a", "vgpus/a-b.c" -> Map.of("name", "a", "carriers", carriers);
            case "vgpus/a/tokens" -> new ArrayList<>(tokens);
            case "regions" -> new ArrayList<>(regions);
            case String other -> regions.stream().filter(region -> other.equals("regions/" + region.get("name")))
                .findFirst().orElse(null);
        };
    }

    private Object change(String method, String path, byte[] body) throws IOException {
        changes.add((method + " " + path + " " + new String(body, StandardCharsets.UTF_8)).strip());
        if (method.equals("DELETE")) {
            tokens.removeIf(token -> path.endsWith("/" + token.get("keyId")));
            regions.removeIf(region -> path.endsWith("/" + region.get("name")));
            return Map.of();
        }
        Item asked = Item.of(Json.read(new String(body, StandardCharsets.UTF_8)));
        if (path.equals("regions")) {
            Map<String, Object> region = new HashMap<>(Map.of("name", asked.text("name"), "vgpu", asked.text("vgpu")));
            region.put("path", region(asked.text("name")).toString());
            region.put("broker", name);
            regions.add(region);
            return region;
        }
        Map<String, Object> token = token("key" + changes.size(), asked.text("note"), null);
        tokens.add(token);
        Map<String, Object> answer = new LinkedHashMap<>(token);
        answer.put("token", token.get("keyId") + "." + SECRET);
        return answer;
    }

    private static Map<String, Object> token(String key, String note, String expires) {
        Map<String, Object> token = new LinkedHashMap<>();
        token.put("keyId", key);
        token.put("note", note);
        token.put("expires", expires);
        return token;
    }

    private Path region(String name) throws IOException {
        return Files.createFile(folder.resolve("shm-" + name),
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
    }

    private Ended run(String line) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        String all = "cdi " + line + " --json --output " + folder.resolve("cdi") + " --files " + folder.resolve(
            "files") + " --url http://127.0.0.1:" + broker.getAddress().getPort();
        int exitCode = Hawserctl.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true))
            .execute(all.split(" "));
        return new Ended(exitCode, out.toString(), err.toString());
    }

    private Item make(String line) throws IOException {
        Ended ended = run(line + " --libraries " + folder.resolve("lib/guest"));
        assertEquals(ExitCode.OK, ended.exitCode(), ended.err());
        assertFalse(ended.out().contains(SECRET), ended.out());
        return Item.of(Json.read(ended.out()));
    }

    private void assertRefuses(int exitCode, String reason, String line) {
        Ended ended = run(line);
        assertEquals(exitCode, ended.exitCode(), line + ": " + ended.err());
        assertTrue(ended.err().contains(reason), line + ": " + ended.err());
        assertFalse(Files.exists(specification("a")), line);
    }

    private Path specification(String name) {
        return folder.resolve("cdi/hawser.io-vgpu-" + name + ".json");
    }

    private Path file(String name) {
        return folder.resolve("files/a").resolve(name);
    }

    private static String mode(Path file) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(file));
    }

    private Item edits() throws IOException {
        return Item.of(Json.read(Files.readString(specification("a")))).items("devices").getFirst()
            .item("containerEdits");
    }

    private String mounts() throws IOException {
        return String.join("\n", edits().items("mounts").stream().map(mount -> folder.relativize(Path.of(mount.text(
            "hostPath"))) + " " + mount.text("containerPath") + " " + mount.text("options")).toList());
    }

    @Test
    void shouldWriteADeviceWithoutASecretInTheSpecification() throws IOException {
        Item answer = make("a");
        assertEquals("hawser.io/vgpu=a", answer.text("device"));
        assertEquals(List.of("POST vgpus/a/tokens {\"note\":\"container device hawser.io/vgpu=a\"}"), changes);
        String text = Files.readString(specification("a"));
        assertFalse(text.contains(SECRET), text);
        assertEquals("rw-r--r--", mode(specification("a")));
        Item specification = Item.of(Json.read(text));
        assertEquals("0.3.0 hawser.io/vgpu", specification.text("cdiVersion") + " " + specification.text("kind"));
        assertEquals("a", specification.items("devices").getFirst().text("name"));
        assertEquals("HAWSER_BROKER=127.0.0.1:7654,HAWSER_TOKEN_FILE=/run/hawser/token,"
            + "LD_LIBRARY_PATH=/usr/lib/hawser/guest,LD_AUDIT=/usr/lib/hawser/guest/libhawser-audit.so,"
            + "GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384", edits().text("env"));
        assertEquals("""
            lib/guest /usr/lib/hawser/guest ro,nosuid,nodev,bind
            bin/hawser /usr/bin/hawser ro,nosuid,nodev,bind
            files/a/guest.toml /etc/hawser/guest.toml ro,nosuid,nodev,bind
            files/a/token /run/hawser/token ro,nosuid,nodev,bind""", mounts());
        assertEquals("key1." + SECRET + "\n", Files.readString(file("token")));
        assertEquals("rw-------", mode(file("token")));
        assertEquals("""
            # Written by hawserctl cdi.
            [guest]
            broker = "127.0.0.1:7654"
            token_file = "/run/hawser/token"
            """, Files.readString(file("guest.toml")));
        // The containers' user must reach the files, even if the umask is 077.
        assertEquals("rwxr-xr-x", mode(folder.resolve("cdi")));
        assertEquals("rwxr-xr-x", mode(folder.resolve("files")));
        assertEquals("rwxr-xr-x", mode(file("")));
        try (Stream<Path> left = Files.list(folder.resolve("cdi"))) {
            assertEquals(List.of(specification("a")), left.toList());
        }
    }

    @Test
    void shouldKeepTheTokenWhileTheBrokerAcceptsIt() throws IOException {
        make("a");
        assertEquals("key1", make("a --broker gpu.example:7654").text("tokenKey"));
        assertEquals(1, changes.size(), changes.toString());
        assertTrue(edits().text("env").startsWith("HAWSER_BROKER=gpu.example:7654,"));
        tokens.set(0, token("key1", "container device hawser.io/vgpu=a", "2020-01-01T00:00:00Z"));
        assertEquals("key2", make("a").text("tokenKey"), "an expired token is replaced");
        tokens.clear();
        assertEquals("key3", make("a").text("tokenKey"), "a revoked token is replaced");
        assertEquals("key3." + SECRET, Files.readString(file("token")).strip());
    }

    @Test
    void shouldRevokeOnlyItsOwnToken() throws IOException {
        make("a");
        tokens.add(token("mine", "of the operator", null));
        Path given = Files.writeString(folder.resolve("given"), "mine." + SECRET + "\n");
        assertEquals("mine", make("a --guest-token " + given).text("tokenKey"));
        assertEquals("DELETE vgpus/a/tokens/key1", changes.getLast());
        assertEquals("mine." + SECRET, Files.readString(file("token")).strip());
        assertEquals(ExitCode.OK, run("a --remove --yes").exitCode());
        assertEquals(2, changes.size(), changes.toString());
        make("a");
        assertEquals(ExitCode.OK, run("a --remove --yes").exitCode());
        assertEquals("DELETE vgpus/a/tokens/key3", changes.getLast());
        assertFalse(Files.exists(specification("a")));
        assertFalse(Files.exists(folder.resolve("files/a")));
        assertEquals(ExitCode.NOT_FOUND, run("a --remove --yes").exitCode());
    }

    @Test
    void shouldRemoveTheFilesOfADeletedVgpu() throws IOException {
        make("a");
        Files.createDirectories(folder.resolve("files/gone"));
        assertEquals(ExitCode.OK, run("gone --remove --yes").exitCode());
        assertFalse(Files.exists(folder.resolve("files/gone")));
        assertTrue(Files.exists(specification("a")), "another device stays");
    }

    @Test
    void shouldRemoveNothingWithoutTheBroker() throws IOException {
        make("a");
        broker.stop(0);
        assertEquals(ExitCode.NOT_REACHABLE, run("a --remove --yes").exitCode());
        assertTrue(Files.exists(specification("a")));
        assertTrue(Files.exists(file("token")), "the token's key is known only there");
    }

    @Test
    void shouldMountTheRegionForWriting() throws IOException {
        regions.add(Map.of("name", "local", "vgpu", "a", "path", region("local").toString()));
        for (String name : new String[] {"local", folder.resolve("shm-local").toString()}) {
            assertEquals(folder.resolve("shm-local").toString(), make("a --region " + name).text("region"));
            assertTrue(mounts().endsWith("\nshm-local /run/hawser/region rw,nosuid,nodev,bind"), mounts());
            assertTrue(edits().text("env").contains(",HAWSER_REGION=/run/hawser/region,"));
            assertTrue(Files.readString(file("guest.toml")).endsWith("region = \"/run/hawser/region\"\n"));
        }
        assertEquals(ExitCode.OK, run("a --remove --yes").exitCode());
        assertEquals(1, regions.size(), "the region of others stays");
    }

    @Test
    void shouldMakeItsRegionOnce() throws IOException {
        carriers = List.of("shm");
        make("a --new-region 64M");
        make("a --new-region 64M");
        Item body = Item.of(Json.read(changes.getFirst().substring("POST regions ".length())));
        assertEquals("cdi-a /dev/shm/hawser-cdi-a 67108864 a", String.join(" ", body.text("name"), body.text("path"),
            body.text("sizeBytes"), body.text("vgpu")));
        assertEquals(1, changes.size(), "a vGPU without TCP needs no token: " + changes);
        assertFalse(edits().text("env").contains("HAWSER_BROKER"));
        assertFalse(Files.exists(file("token")));
        assertEquals(ExitCode.OK, run("a --remove --yes").exitCode());
        assertEquals("DELETE regions/cdi-a", changes.getLast());
    }

    @Test
    void shouldUseOnlyRegionsOfItsOwnBrokerInAPool() throws IOException {
        name = "left";
        regions.add(Map.of("name", "cdi-a", "vgpu", "other", "path", "/nowhere/region", "broker", "right"));
        make("a --new-region 1M");
        assertTrue(mounts().contains("shm-cdi-a /run/hawser/region "), mounts());
        changes.clear();
        make("a --new-region 1M");
        assertEquals(List.of(), changes, "the broker serves it already");
    }

    @Test
    void shouldGiveTheFilesToTheUser() throws IOException {
        assumeTrue((int) Files.getAttribute(folder, "unix:uid") == 0, "only root gives files away");
        make("a --new-region 1M --user 54321");
        for (String name : new String[] {"token", "guest.toml"}) {
            assertEquals(54321, Files.getAttribute(file(name), "unix:uid"), name);
        }
        assertEquals(0, Files.getAttribute(specification("a"), "unix:uid"));
        assertEquals(0, Files.getAttribute(file(""), "unix:uid"), "the user could put links into the folder");
        Path region = folder.resolve("shm-cdi-a");
        assertEquals(0, Files.getAttribute(region, "unix:uid"), "the broker serves only its own files and root's");
        assertEquals("rw-rw----", mode(region), "the access list has an entry");
        make("a --new-region 1M");
        assertEquals(0, Files.getAttribute(file("token"), "unix:uid"));
        assertEquals("rw-------", mode(region), "the earlier user has lost the access");
        make("a --new-region 1M --user 54321");
        make("a");
        assertEquals("rw-------", mode(region), "the device has no region any more");
    }

    @Test
    void shouldTakeTheBrokersAddress() throws IOException {
        endpoint = "[::]:7654";
        assertEquals("127.0.0.1:7654", make("a").text("broker"), "the host of the REST interface");
        endpoint = "";
        assertEquals("tls://127.0.0.1:7656", make("a").text("broker"));
        assertFalse(edits().text("env").contains("HAWSER_CA_FILE"));
        Path authorities = Files.writeString(folder.resolve("authorities"), "certificates");
        make("a --ca-file " + authorities);
        assertTrue(edits().text("env").contains(",HAWSER_CA_FILE=/run/hawser/ca.pem,"), edits().text("env"));
        assertTrue(mounts().endsWith("\nfiles/a/ca.pem /run/hawser/ca.pem ro,nosuid,nodev,bind"), mounts());
        assertEquals("certificates", Files.readString(file("ca.pem")));
        assertTrue(Files.readString(file("guest.toml")).endsWith("ca_file = \"/run/hawser/ca.pem\"\n"));
        make("a");
        assertFalse(Files.exists(file("ca.pem")));
    }

    @Test
    void shouldReplaceADamagedSpecification() throws IOException {
        make("a");
        for (String text : new String[] {"", "[]", "{\"devices\":[{\"containerEdits\":{\"mounts\":[{\"containerPath\":"
            + "\"/run/hawser/region\",\"hostPath\":\"\\u0000\"}]}}]}"}) {
            Files.writeString(specification("a"), text);
            make("a");
            assertTrue(mounts().startsWith("lib/guest "), mounts());
        }
    }

    @Test
    void shouldRefuseWithAReason() throws IOException {
        String libraries = " --libraries " + folder.resolve("lib/guest");
        regions.add(Map.of("name", "other", "vgpu", "b", "path", region("other").toString()));
        regions.add(Map.of("name", "far", "vgpu", "a", "path", "/nowhere/region"));
        assertRefuses(ExitCode.NOT_FOUND, "there is none", "nothing" + libraries);
        assertRefuses(ExitCode.USAGE, "begins and ends with a letter or digit: a_", "a_" + libraries);
        assertRefuses(ExitCode.USAGE, "begins and ends with a letter or digit: ../a", "../a" + libraries);
        assertRefuses(ExitCode.USAGE, "no such user: no-such-user", "a --user no-such-user" + libraries);
        assertRefuses(ExitCode.USAGE, "no guest libraries", "a --libraries " + folder);
        assertRefuses(ExitCode.USAGE, "opens another vGPU: region=other vgpu=b", "a --region other" + libraries);
        assertRefuses(ExitCode.USAGE, "not on this machine", "a --region far" + libraries);
        assertRefuses(ExitCode.NOT_FOUND, "no such region: none", "a --region none" + libraries);
        assertRefuses(ExitCode.USAGE, "one region", "a --region other --new-region 1M" + libraries);
        assertRefuses(ExitCode.USAGE, "--remove takes only", "a --remove --user root");
        assertRefuses(ExitCode.USAGE, "an address is like host:7654", "a --broker x\"y" + libraries);
        Path wrong = Files.writeString(folder.resolve("wrong"), "unknown.secret\n");
        assertRefuses(ExitCode.USAGE, "no valid token of the vGPU a", "a --guest-token " + wrong + libraries);
        carriers = List.of("shm");
        assertRefuses(ExitCode.USAGE, "only shared memory", "a" + libraries);
        carriers = List.of("tcp");
        assertRefuses(ExitCode.USAGE, "allows no shared memory", "a --new-region 1M" + libraries);
        assertEquals(List.of(), changes);
    }

    @Test
    void shouldKeepTheBrokersUserBeforeTheCommand() {
        // Behind the command's name --user is a user of this machine; before it asks for a password, which is missing.
        StringWriter err = new StringWriter();
        int exitCode = Hawserctl.commandLine().setErr(new PrintWriter(err, true)).execute("--user", "admin", "cdi", "a",
            "--user", "root", "--url", "http://127.0.0.1:" + broker.getAddress().getPort());
        assertEquals(ExitCode.USAGE, exitCode);
        assertTrue(err.toString().contains("the password of admin is missing"), err.toString());
    }
}
