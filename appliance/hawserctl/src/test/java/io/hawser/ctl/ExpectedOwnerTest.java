package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.net.httpserver.HttpServer;
import io.hawser.client.Json;
import io.hawser.ctl.command.ExitCode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Requests that name the expected owner of a vGPU, and the reactions to the broker's answers. */
class ExpectedOwnerTest {
    private final BlockingQueue<String> asked = new LinkedBlockingQueue<>();
    private HttpServer broker;
    private volatile int status;

    @BeforeEach
    void start() throws IOException {
        broker = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        broker.createContext("/", exchange -> {
            asked.add((exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                + new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)).strip());
            byte[] answer = Json.line(Map.of("detail", "owner=b expectedOwner=a")).getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(status, status == 204 ? -1 : answer.length);
            if (status != 204) {
                exchange.getResponseBody().write(answer);
            }
            exchange.close();
        });
        broker.start();
    }

    @AfterEach
    void stop() {
        broker.stop(0);
    }

    private int run(int answered, StringWriter err, String line) {
        status = answered;
        String[] args = (line + " --json --url http://127.0.0.1:" + broker.getAddress().getPort()).split(" ");
        return Hawserctl.commandLine().setOut(new PrintWriter(new StringWriter(), true))
            .setErr(new PrintWriter(err, true)).execute(args);
    }

    private void assertAsks(String request, String line) throws InterruptedException {
        StringWriter err = new StringWriter();
        assertEquals(ExitCode.OK, run(request.startsWith("DELETE") ? 204 : 200, err, line), err.toString());
        assertEquals(request, asked.take());
    }

    @Test
    void shouldNameTheOwner() throws Exception {
        assertAsks("PATCH /api/v1/vgpus/a {\"computeShare\":7,\"expectedOwner\":\"u@h\"}",
            "vgpus change a --share 7 --expected-owner domain:u@h");
        assertAsks("PATCH /api/v1/vgpus/a {\"owner\":{\"kind\":\"host\",\"id\":\"n\"},\"expectedOwner\":\"\"}",
            "vgpus change a --owner host:n --expected-owner none");
        assertAsks("DELETE /api/v1/vgpus/a?force=false&expectedOwner=u%40h%2Bg",
            "vgpus delete a --yes --expected-owner domain:u@h+g");
        assertAsks("DELETE /api/v1/vgpus/a?force=true&expectedOwner=",
            "vgpus delete a --yes --force --expected-owner none");
    }

    @Test
    void shouldSendNoExpectedOwnerUnlessGiven() throws Exception {
        assertAsks("PATCH /api/v1/vgpus/a {\"computeShare\":7}", "vgpus change a --share 7");
        assertAsks("PATCH /api/v1/vgpus/a {\"swappable\":true}", "vgpus change a --swappable");
        assertAsks("PATCH /api/v1/vgpus/a {\"swappable\":false}", "vgpus change a --no-swappable");
        assertAsks("PATCH /api/v1/vgpus/a {\"rdma\":true}", "vgpus change a --rdma");
        assertAsks("PATCH /api/v1/vgpus/a {\"rdma\":false}", "vgpus change a --no-rdma");
        assertAsks("DELETE /api/v1/vgpus/a?force=true", "vgpus delete a --yes --force");
    }

    @Test
    void shouldExitWithChangedWhenTheOwnerDiffers() {
        for (String line : new String[] {"vgpus change a --share 7", "vgpus delete a --yes"}) {
            StringWriter err = new StringWriter();
            assertEquals(ExitCode.CHANGED, run(412, err, line + " --expected-owner host:a"));
            assertEquals("hawserctl: refused: owner=b expectedOwner=a", err.toString().strip());
            assertEquals(ExitCode.REFUSED, run(409, new StringWriter(), line + " --expected-owner host:a"));
        }
    }
}
