package io.hawser.client;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/** A client of hawserd on this machine, by its Unix socket. Each failure is a {@link ClientException} with a reason. */
public final class DaemonClient {
    /** The socket of hawserd unless the command line names another. */
    public static final String SOCKET = "/run/hawser/hawserd.sock";
    private static final int MAX_LINE_BYTES = 4 << 20; // a list of thousands of domains
    private static final int MAX_HEADERS = 100;

    private final Path socket;

    /** Connects for each request. */
    public DaemonClient(Path socket) {
        this.socket = socket;
    }

    /** Reads the resource at a path. */
    public Object get(String path) {
        return ask("GET", path, null, text -> {});
    }

    /**
     * Runs a command.
     *
     * @param body a value that {@link Json} can write.
     * @param progress receives a sentence for each stage.
     */
    public Object post(String path, Object body, Consumer<String> progress) {
        return ask("POST", path, Json.line(body), progress);
    }

    private Object ask(String method, String path, String body, Consumer<String> progress) {
        try (SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            connect(channel);
            byte[] bytes = body == null ? new byte[0] : body.getBytes(StandardCharsets.UTF_8);
            String head = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n"
                + "Content-Type: application/json\r\nContent-Length: " + bytes.length + "\r\nConnection: close\r\n\r\n";
            write(channel, head.getBytes(StandardCharsets.UTF_8));
            write(channel, bytes);
            InputStream in = Channels.newInputStream(channel);
            status(in);
            for (String line = line(in); !line.isEmpty(); line = line(in)) {
                Item item = Item.of(Json.read(line));
                if (item.has("progress")) {
                    progress.accept(item.text("progress"));
                } else {
                    return answer((int) item.number("status"), item.fields().get("answer"));
                }
            }
            throw new IOException("the answer is not complete");
        } catch (IOException e) {
            throw new ClientException(Failure.NOT_REACHABLE, "hawserd did not answer at " + socket + ": "
                + Problems.of(e));
        }
    }

    private void connect(SocketChannel channel) {
        try {
            channel.connect(UnixDomainSocketAddress.of(socket));
        } catch (IOException | IllegalArgumentException e) {
            String reason = Problems.of(e);
            boolean denied = reason.toLowerCase(Locale.ROOT).contains("permission denied");
            throw new ClientException(denied ? Failure.NOT_ALLOWED : Failure.NOT_REACHABLE, denied
                ? "no permission for hawserd at " + socket + ": only root and the group of its settings have it"
                : "hawserd does not answer at " + socket + ": " + reason);
        }
    }

    private static void write(SocketChannel channel, byte[] bytes) throws IOException {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
    }

    private static void status(InputStream in) throws IOException {
        String status = line(in).strip();
        if (!status.matches("HTTP/1\\.[01] 200 .*")) {
            throw new IOException("the answer is not hawserd's: " + Text.printable(status));
        }
        for (int headers = 0; !line(in).strip().isEmpty(); headers++) {
            if (headers == MAX_HEADERS) {
                throw new IOException("the answer is not hawserd's: too many headers");
            }
        }
    }

    private static String line(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b >= 0 && b != '\n'; b = in.read()) {
            if (line.size() == MAX_LINE_BYTES) {
                throw new IOException("the answer is too long");
            }
            line.write(b);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    private static Object answer(int status, Object body) {
        if (status == 200) {
            return body;
        }
        String reason = body instanceof Map<?, ?> object && object.get("error") instanceof String text
            ? Text.printable(text) : "HTTP " + status;
        throw new ClientException(switch (status) {
            case 400 -> Failure.INVALID;
            case 403 -> Failure.NOT_ALLOWED;
            case 404 -> Failure.NOT_FOUND;
            case 503 -> Failure.NOT_REACHABLE;
            default -> Failure.REFUSED;
        }, status, reason);
    }
}
