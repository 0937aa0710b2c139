package io.hawser.client;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;

/** A client of a broker's REST interface. Each failure is a {@link ClientException} with the broker's reason. */
public final class ApiClient implements AutoCloseable {
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(5);
    /**
     * Limits the concurrent requests, each with its own connection. hawserd follows hundreds of domains, and a broker
     * allows 64 connections per peer (hawser.http.max-per-peer).
     */
    private static final int MAX_REQUESTS = 16;
    /** The longest answer of a broker: it waits for the end of a session's worker, or for a GPU. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(60);

    private final Endpoint endpoint;
    private final Duration answerLimit;
    private final HttpClient client;
    private final Semaphore turns = new Semaphore(MAX_REQUESTS, true);

    /** Connects at the first request. */
    public ApiClient(Endpoint endpoint) {
        this(endpoint, ANSWER_LIMIT);
    }

    /** The same with a shorter limit for each answer. */
    public ApiClient(Endpoint endpoint, Duration answerLimit) {
        this.endpoint = endpoint;
        this.answerLimit = answerLimit;
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_LIMIT)
            .sslContext(Trust.of(endpoint.url(), endpoint.caFile())).followRedirects(HttpClient.Redirect.NEVER)
            .build();
    }

    /** The broker's address and the caller's credentials. */
    public Endpoint endpoint() {
        return endpoint;
    }

    /** Encodes any text as one segment of a path. */
    public static String segment(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** Reads the resource at a path. */
    public Object get(String path) {
        return read(send("GET", path, null));
    }

    /**
     * Sends a change.
     *
     * @param body a value that {@link Json} can write; null for none.
     * @return the answer; null if it is empty.
     */
    public Object change(String method, String path, Object body) {
        return read(send(method, path, body));
    }

    /** Logs in and returns the broker's cookie. */
    public String login(Map<String, Object> body) {
        HttpResponse<String> response = send("POST", "/api/v1/login", body);
        return response.headers().allValues("Set-Cookie").stream().filter(c -> c.startsWith("hawser_session="))
            .map(c -> c.split(";", 2)[0]).findFirst()
            .orElseThrow(() -> new ClientException(Failure.REFUSED, "the broker has set no cookie"));
    }

    /** The lines of an event stream. The caller closes it. */
    public Stream<String> stream(String path) {
        HttpRequest request = request(path).header("Accept", "text/event-stream").GET().build();
        HttpResponse<Stream<String>> response = exchange(request, HttpResponse.BodyHandlers.ofLines());
        if (response.statusCode() != 200) {
            String body = String.join("\n", response.body().limit(100).toList());
            throw refusal(response.statusCode(), body);
        }
        return response.body();
    }

    private HttpRequest.Builder request(String path) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(endpoint.url() + path));
        endpoint.headers().forEach(request::header);
        return request;
    }

    private HttpResponse<String> send(String method, String path, Object body) {
        HttpRequest.Builder request = request(path).timeout(answerLimit).header("Accept", "application/json");
        if (!method.equals("GET")) {
            // Another site's page cannot send this header together with the user's cookie.
            request.header("X-Hawser-Request", "1");
        }
        if (body != null) {
            request.header("Content-Type", "application/json");
        }
        HttpRequest whole = request.method(method, body == null ? HttpRequest.BodyPublishers.noBody()
            : HttpRequest.BodyPublishers.ofString(Json.line(body))).build();
        takeTurn();
        HttpResponse<String> response;
        try {
            response = exchange(whole, HttpResponse.BodyHandlers.ofString());
        } finally {
            turns.release();
        }
        if (response.statusCode() / 100 != 2) {
            throw refusal(response.statusCode(), response.body());
        }
        return response;
    }

    private void takeTurn() {
        try {
            if (!turns.tryAcquire(answerLimit.toNanos(), TimeUnit.NANOSECONDS)) {
                throw new ClientException(Failure.NOT_REACHABLE, "earlier requests to " + endpoint.url()
                    + " were not answered in time");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClientException(Failure.REFUSED, "interrupted");
        }
    }

    private <T> HttpResponse<T> exchange(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        try {
            return client.send(request, handler);
        } catch (SSLException e) {
            throw new ClientException(Failure.NOT_REACHABLE, endpoint.url() + " is not trusted, or does not use TLS"
                + " (--ca-file names its certificate authority): " + Problems.of(e));
        } catch (HttpTimeoutException e) {
            throw new ClientException(Failure.NOT_REACHABLE, "no answer from " + endpoint.url() + " in time");
        } catch (ConnectException e) {
            throw new ClientException(Failure.NOT_REACHABLE, "no broker answers at " + endpoint.url()
                + ": " + (isUnresolved(e) ? "there is no such host"
                    : e.getMessage() == null ? "the connection was refused" : e.getMessage()));
        } catch (IOException e) {
            throw new ClientException(Failure.NOT_REACHABLE, "the connection to " + endpoint.url() + " failed: "
                + Problems.of(e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ClientException(Failure.REFUSED, "interrupted");
        }
    }

    private static boolean isUnresolved(Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof UnresolvedAddressException) {
                return true;
            }
        }
        return false;
    }

    private ClientException refusal(int status, String body) {
        String reason = "HTTP " + status;
        try {
            Item problem = Item.of(Json.read(body));
            reason = problem.has("detail") ? problem.text("detail") : problem.has("title") ? problem.text("title")
                : reason;
        } catch (IOException | ClientException e) {
            reason += ", without a reason that could be read"; // a proxy's page, not a broker's error
        }
        reason = Text.printable(reason);
        return switch (status) {
            case 401 -> new ClientException(Failure.NOT_ALLOWED, status, endpoint.identity().isEmpty()
                ? "the broker requires a login: --token-file, --user or hawserctl login"
                : "the broker does not accept " + endpoint.identity() + ": " + reason);
            case 403 -> new ClientException(Failure.NOT_ALLOWED, status, "not allowed: " + reason);
            case 404 -> new ClientException(Failure.NOT_FOUND, status, reason);
            case 412 -> new ClientException(Failure.CHANGED, status, "refused: " + reason);
            default -> new ClientException(Failure.REFUSED, status,
                (status >= 500 ? "the broker failed: " : "refused: ") + reason);
        };
    }

    private static Object read(HttpResponse<String> response) {
        if (response.body().isBlank()) {
            return null;
        }
        try {
            return Json.read(response.body());
        } catch (IOException e) {
            throw new ClientException(Failure.REFUSED, "the answer is no JSON: is this a Hawser broker? ("
                + response.headers().firstValue("Content-Type").orElse("no type") + ")");
        }
    }

    @Override
    public void close() {
        client.shutdownNow();
    }
}
