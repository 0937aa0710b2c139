package io.hawser.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/** A client of the REST interface that sends what it likes, over a socket of its own. */
final class TestClient implements AutoCloseable {
    private static final int READ_TIMEOUT_MS = 180_000; // ends a test that hangs

    private final Socket socket;

    TestClient(Socket connected) throws IOException {
        socket = connected;
        socket.setSoTimeout(READ_TIMEOUT_MS);
        socket.setTcpNoDelay(true);
    }

    /** Connects from a loopback address. */
    TestClient(URI http, String source) throws IOException {
        this(connect(http, source));
    }

    private static Socket connect(URI http, String source) throws IOException {
        Socket socket = new Socket();
        socket.bind(new InetSocketAddress(InetAddress.ofLiteral(source), 0));
        socket.connect(new InetSocketAddress(http.getHost(), http.getPort()));
        return socket;
    }

    TestClient send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.ISO_8859_1));
        return this;
    }

    /** Sends as much as the other side takes before it closes. */
    TestClient sendWhileOpen(String text) {
        try {
            return send(text);
        } catch (IOException e) {
            return this; // closed on the way, which is what closed() then tells
        }
    }

    /** Reads until the other side has closed. */
    String rest() throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try {
            socket.getInputStream().transferTo(all);
        } catch (SocketException e) {
            // A reset: it has closed with bytes of ours unread.
            all.write(new byte[0]);
        }
        return all.toString(StandardCharsets.ISO_8859_1);
    }

    /** Whether the other side has closed without an answer; waits until it does one of the two. */
    boolean isRefused() throws IOException {
        return rest().isEmpty();
    }

    /** The status of the next answer, past its body, which must have a length. */
    int status() throws IOException {
        String status = line();
        int length = 0;
        for (String field = line(); !field.isEmpty(); field = line()) {
            if (field.regionMatches(true, 0, "content-length:", 0, 15)) {
                length = Integer.parseInt(field.substring(15).strip());
            }
        }
        if (socket.getInputStream().readNBytes(length).length != length) {
            throw new IOException("the body ends early: " + status);
        }
        return Integer.parseInt(status.split(" ")[1]);
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        InputStream in = socket.getInputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                throw new IOException("closed after: " + line);
            }
            line.append((char) next);
        }
        return line.toString().strip();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
