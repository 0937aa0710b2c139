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

/** A client of the REST interface that sends any text over a socket of its own. */
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

    /** Sends text, or less where the broker closes the connection first. */
    TestClient sendWhileOpen(String text) {
        try {
            return send(text);
        } catch (IOException e) {
            return this; // the broker has closed the connection, which later reads report
        }
    }

    /** Reads until the broker has closed the connection. */
    String rest() throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try {
            socket.getInputStream().transferTo(all);
        } catch (SocketException e) {
            // A reset: the broker has closed without reading all bytes of this client.
            all.write(new byte[0]);
        }
        return all.toString(StandardCharsets.ISO_8859_1);
    }

    /** Waits until the broker closes the connection. Returns whether it has sent no answer before. */
    boolean isRefused() throws IOException {
        return rest().isEmpty();
    }

    /** Reads the next answer with its body, which must have a length, and returns the status. */
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
