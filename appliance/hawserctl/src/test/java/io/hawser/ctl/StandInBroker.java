package io.hawser.ctl;

import com.sun.net.httpserver.HttpServer;
import io.hawser.client.Json;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Function;

/** Answers REST in place of a broker, and runs hawserctl against itself. */
final class StandInBroker implements AutoCloseable {
    private static final int NO_CONTENT = 204;

    final BlockingQueue<String> asked = new LinkedBlockingQueue<>();
    volatile int status = 200;
    private final HttpServer server;

    /** The end of a command. */
    record Ended(int exitCode, String out, String err) {}

    /** Starts; {@code answers} returns the body for a path. */
    StandInBroker(Function<String, Object> answers) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            asked.add((exchange.getRequestMethod() + " " + exchange.getRequestURI() + " "
                + new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8)).strip());
            byte[] bytes = Json.line(answers.apply(exchange.getRequestURI().getPath()))
                .getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(status, status == NO_CONTENT ? -1 : bytes.length);
            if (status != NO_CONTENT) {
                exchange.getResponseBody().write(bytes);
            }
            exchange.close();
        });
        server.start();
    }

    /** Runs a command of words without spaces. */
    Ended run(String line) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        String all = line + " --url http://127.0.0.1:" + server.getAddress().getPort();
        int exitCode = Hawserctl.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true))
            .execute(all.split(" "));
        return new Ended(exitCode, out.toString(), err.toString());
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
