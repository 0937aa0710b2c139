package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.door.Door;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.libvirt.LibvirtFunctions;
import io.hawser.hypervisor.libvirt.LibvirtHotPlug;
import io.hawser.hypervisor.reconcile.Reconciler;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;

/** The script that libvirt calls, with a real daemon and with other programs at the socket. */
@EnabledIf(value = "hasCurl", disabledReason = "curl is not installed, which the hook needs")
class HookTest {
    private static final Path SCRIPT = Path.of("../../hooks/50-hawser").toAbsolutePath().normalize();
    private static final List<String> REFUSABLE = List.of("prepare", "migrate", "restore");
    private static final List<String> OTHERS = List.of("start", "started", "stopped", "release", "reconnect", "attach");
    private static final String XML = Xml.domain(UUID.randomUUID(), "a b/c", Xml.vgpu("transport='tcp'"), "");

    @TempDir
    Path folder;
    private Daemon daemon;
    private ServerSocketChannel other;

    /** The script's result. */
    private record Ended(int exitCode, String err, String out, Duration took) {}

    static boolean hasCurl() throws Exception {
        return new ProcessBuilder("sh", "-c", "command -v curl").start().waitFor() == 0;
    }

    @AfterEach
    void close() throws IOException {
        if (daemon != null) {
            daemon.close();
        }
        if (other != null) {
            other.close();
        }
    }

    private Path socket() {
        return folder.resolve("s");
    }

    private Ended run(String operation, String xml, String... environment) throws Exception {
        Path in = Files.writeString(folder.resolve("in"), xml);
        Path err = folder.resolve("err");
        Path out = folder.resolve("out");
        ProcessBuilder builder = new ProcessBuilder(SCRIPT.toString(), "a b/c", operation,
            operation.startsWith("st") && !operation.equals("start") ? "end" : "begin", "-")
            .redirectInput(in.toFile()).redirectError(err.toFile()).redirectOutput(out.toFile());
        builder.environment().put("HAWSERD_SOCKET", socket().toString());
        for (int i = 0; i < environment.length; i += 2) {
            builder.environment().put(environment[i], environment[i + 1]);
        }
        long begin = System.nanoTime();
        Process process = builder.start();
        assertTrue(process.waitFor(120, TimeUnit.SECONDS), "it must end");
        return new Ended(process.exitValue(), Files.readString(err), Files.readString(out),
            Duration.ofNanos(System.nanoTime() - begin));
    }

    @SuppressWarnings("ModifiedButNotUsed") // the list keeps connections from the garbage collector
    private void listen(String answer) throws IOException {
        other = ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(socket()));
        List<SocketChannel> kept = new ArrayList<>();
        Thread.ofPlatform().daemon().start(() -> {
            try {
                while (true) {
                    SocketChannel client = other.accept();
                    kept.add(client); // keeps the connection open without an answer
                    if (answer != null) {
                        readAll(client); // a client that still writes might not read the answer
                        client.write(ByteBuffer.wrap(answer.getBytes(StandardCharsets.ISO_8859_1)));
                        client.close();
                    }
                }
            } catch (IOException e) {
                kept.clear(); // the test has closed it
            }
        });
    }

    private static void readAll(SocketChannel client) throws IOException {
        ByteBuffer all = ByteBuffer.allocate(1 << 20);
        while (!StandardCharsets.UTF_8.decode(all.duplicate().flip()).toString().strip().endsWith("</domain>")) {
            if (client.read(all) < 0) {
                return;
            }
        }
    }

    private void startDaemon() throws IOException {
        Path config = Files.writeString(folder.resolve("conf"), """
            broker.url = "http://127.0.0.1:1"
            region.folder = "%s"
            socket.path = "%s"
            state-dir = "%s"
            """.formatted(folder, socket(), folder.resolve("state")));
        FakeHypervisor hypervisor = new FakeHypervisor(UUID.randomUUID().toString());
        Hypervisor connection = hypervisor.connect();
        daemon = new Daemon(HawserdConfig.read(config, true), new Daemon.Parts(connection,
            new LibvirtHotPlug(connection), new LibvirtFunctions(connection,
                new AdapterFiles(folder)),
            null), Reconciler.Patience.STANDARD);
    }

    private void assertRefusedWhereItCan(String reason) throws Exception {
        for (String operation : REFUSABLE) {
            Ended ended = run(operation, XML);
            assertEquals(1, ended.exitCode(), operation + ": " + ended);
            assertTrue(ended.err().startsWith("hawser: ") && ended.err().contains(reason), operation + ": " + ended);
            assertEquals(1, ended.err().lines().count(), "one sentence: " + ended);
            assertEquals("", ended.out(), "libvirt would read output as a changed domain XML");
        }
        for (String operation : OTHERS) {
            Ended ended = run(operation, XML);
            assertEquals(0, ended.exitCode(), operation + ": " + ended);
            assertEquals("", ended.out() + ended.err(), operation);
        }
    }

    @Test
    void shouldRefuseTheStartWhenNobodyListens() throws Exception {
        assertRefusedWhereItCan("hawserd does not answer at " + socket());
    }

    @Test
    void shouldNotTouchOtherDomains() throws Exception {
        listen(null); // a request would hang
        for (String xml : List.of(Xml.domain(UUID.randomUUID(), "a", "", ""), Xml.domain(UUID.randomUUID(), "a", "",
            "<shmem name='other'/>"), "", "garbage")) {
            for (String operation : REFUSABLE) {
                Ended ended = run(operation, xml);
                assertEquals(0, ended.exitCode(), ended.toString());
            }
        }
    }

    @Test
    void shouldEndInTimeWithoutAnAnswer() throws Exception {
        listen(null);
        for (String operation : List.of("prepare", "reconnect", "release")) {
            Ended ended = run(operation, XML, "HAWSER_HOOK_TIMEOUT", "2");
            assertEquals(operation.equals("prepare") ? 1 : 0, ended.exitCode(), ended.toString());
            assertTrue(ended.took().compareTo(Duration.ofSeconds(60)) < 0, ended.toString());
        }
        assertTrue(Files.readString(SCRIPT).contains("HAWSER_HOOK_TIMEOUT:-25"), "what libvirt waits for at most");
    }

    @Test
    void shouldPrintTheDaemonsReason() throws Exception {
        String body = "{\"error\":\"no \\\"room\\\" on \\\\GPU; 16G of 8G\"}\n";
        listen("HTTP/1.1 409 Conflict\r\nContent-Length: " + body.length() + "\r\nConnection: close\r\n\r\n" + body);
        assertRefusedWhereItCan("hawser: no \"room\" on \\GPU; 16G of 8G");
    }

    @Test
    void shouldRefuseTheStartWhenTheAnswerIsGarbage() throws Exception {
        for (String answer : List.of("garbage\r\n\r\n", "HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n\u0001\u001b[2J"
            + "x".repeat(100_000), "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "")) {
            listen(answer);
            Ended ended = run("prepare", XML);
            assertEquals(1, ended.exitCode(), ended.toString());
            assertEquals(1, ended.err().lines().count(), ended.toString());
            assertTrue(ended.err().length() < 3000 && ended.err().chars().noneMatch(c -> c < ' ' && c != '\n'),
                ended.toString());
            assertEquals(0, run("reconnect", XML).exitCode());
            assertEquals(0, run("release", XML).exitCode());
            other.close();
            Files.delete(socket());
        }
    }

    @Test
    void shouldPassTheDaemonsRefusalOn() throws Exception {
        startDaemon();
        assertRefusedWhereItCanByDaemon();
        Ended bad = run("prepare", XML.replace("transport='tcp'", "share='0' transport='tcp'"));
        assertTrue(bad.err().contains("vgpu: share must be 1 to 100: share=0"), bad.toString());
        Ended big = run("prepare", XML.replace("<devices>", "<!--" + "x".repeat(DomainXml.MAX_BYTES) + "--><devices>"));
        assertEquals(1, big.exitCode(), big.toString());
        assertTrue(big.err().contains("at most"), big.toString());
    }

    private void assertRefusedWhereItCanByDaemon() throws Exception {
        Ended refused = run("prepare", XML);
        assertEquals(1, refused.exitCode(), refused.toString());
        assertTrue(refused.err().contains("broker"), refused.toString());
        for (String operation : OTHERS) {
            Ended ended = run(operation, XML);
            assertEquals(0, ended.exitCode(), ended.toString());
            assertEquals("", ended.out() + ended.err());
        }
    }

    @Test
    void shouldRefuseStrangeRequests() throws Exception {
        startDaemon();
        UnixHttp http = new UnixHttp(socket());
        assertTrue(http.raw("GET /v1/nothing HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 404 "));
        assertTrue(http.raw("GET /v1/hooks/qemu/prepare/begin HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 405 "));
        assertTrue(http.raw("POST /v1/hooks/lxc/prepare/begin HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 404 "));
        assertTrue(http.raw("POST /v1/domains/a/attach HTTP/1.1\r\nContent-Length: 1\r\n\r\n{")
            .startsWith("HTTP/1.1 400 "));
        assertTrue(http.raw("POST /v1/domains/a/attach HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n")
            .startsWith("HTTP/1.1 413 "));
        assertTrue(http.raw("GET /" + "x".repeat(20_000) + " HTTP/1.1\r\n\r\n").startsWith("HTTP/1.1 400 "));
        assertTrue(http.raw("\u0000\u0001\u0002\r\n\r\n").startsWith("HTTP/1.1 400 "));
        for (int i = 0; i < Door.MAX_CONNECTIONS * 3; i++) {
            http.raw("GET /v1/domains HTTP/1.1\r\n\r\n"); // each connection frees its place
        }
        assertFalse(http.raw("GET /v1/domains HTTP/1.1\r\n\r\n").isEmpty());
    }

    @Test
    void shouldAnswerAClientThatStillSendsATooLongRequest() throws Exception {
        startDaemon();
        String body = "x".repeat(8 << 20); // more than a socket buffers
        String answer = new UnixHttp(socket()).raw("POST /v1/hooks/qemu/prepare/begin HTTP/1.1\r\nContent-Length: "
            + body.length() + "\r\n\r\n" + body);
        assertTrue(answer.startsWith("HTTP/1.1 413 ") && answer.contains("at most"), answer);
    }

    @Test
    void shouldAnswerEachOfTwoHundredHooksThatComeAtOnce() throws Exception {
        startDaemon();
        byte[] body = XML.getBytes(StandardCharsets.UTF_8);
        List<SocketChannel> hooks = new ArrayList<>();
        try {
            // All connections exist before the first one sends its request.
            for (int i = 0; i < 200; i++) {
                hooks.add(SocketChannel.open(UnixDomainSocketAddress.of(socket())));
            }
            for (SocketChannel hook : hooks) {
                hook.write(ByteBuffer.wrap(("POST /v1/hooks/qemu/stopped/end HTTP/1.1\r\nHost: localhost\r\n"
                    + "Content-Length: " + body.length + "\r\n\r\n" + XML).getBytes(StandardCharsets.UTF_8)));
            }
            for (SocketChannel hook : hooks) {
                String answer = new String(Channels.newInputStream(hook).readAllBytes(), StandardCharsets.UTF_8);
                assertTrue(answer.startsWith("HTTP/1.1 200 "), hooks.indexOf(hook) + ": " + answer);
            }
        } finally {
            for (SocketChannel hook : hooks) {
                hook.close();
            }
        }
    }

    @Test
    void shouldBeCleanForShellcheck() throws Exception {
        assumeTrue(new ProcessBuilder("sh", "-c", "command -v shellcheck").start().waitFor() == 0,
            "SKIPPED: shellcheck is not installed");
        Process check = new ProcessBuilder("shellcheck", "--shell=sh", SCRIPT.toString()).redirectErrorStream(true)
            .start();
        String said = new String(check.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, check.waitFor(), said);
    }
}
