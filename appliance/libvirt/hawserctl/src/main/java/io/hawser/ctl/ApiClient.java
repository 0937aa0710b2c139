package io.hawser.ctl;

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

/** Asks a broker. Each failure is a {@link CtlException} with the broker's own reason. */
public final class ApiClient implements AutoCloseable {
    private static final Duration CONNECT_LIMIT = Duration.ofSeconds(5);
    /**
     * Requests at a time, a connection each. hawserd follows hundreds of domains at once, and a broker gives one peer
     * 64 connections (hawser.http.max-per-peer).
     */
    private static final int MAX_REQUESTS = 16;
    /** The longest that a broker takes: it waits for the end of a session's worker, or for a GPU. */
    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(60);

    private final Endpoint endpoint;
    private final Duration answerLimit;
    private final HttpClient client;
    private final Semaphore turns = new Semaphore(MAX_REQUESTS, true);

    /** Asks this broker; connects when it is first asked. */
    public ApiClient(Endpoint endpoint) {
        this(endpoint, ANSWER_LIMIT);
    }

    /** The same for somebody who waits no longer than that for an answer. */
    public ApiClient(Endpoint endpoint, Duration answerLimit) {
        this.endpoint = endpoint;
        this.answerLimit = answerLimit;
        client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(CONNECT_LIMIT)
            .sslContext(Trust.of(endpoint.url(), endpoint.caFile())).followRedirects(HttpClient.Redirect.NEVER)
            .build();
    }

    /** The broker and who asks. */
    public Endpoint endpoint() {
        return endpoint;
    }

    /** A part of a path, whatever its user has typed. */
    public static String segment(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    /** What is at a path. */
    public Object get(String path) {
        return read(send("GET", path, null));
    }

    /**
     * Changes something.
     *
     * @param body as {@link Json} has it; null for none.
     * @return the answer; null when there is none.
     */
    public Object change(String method, String path, Object body) {
        return read(send(method, path, body));
    }

    /** Logs in; the cookie that the broker has set. */
    public String login(Map<String, Object> body) {
        HttpResponse<String> response = send("POST", "/api/v1/login", body);
        return response.headers().allValues("Set-Cookie").stream().filter(c -> c.startsWith("hawser_session="))
            .map(c -> c.split(";", 2)[0]).findFirst()
            .orElseThrow(() -> new CtlException(ExitCode.REFUSED, "the broker has set no cookie"));
    }

    /** The lines of a stream, which ends when it is closed. */
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
            request.header("X-Hawser-Request", "1"); // a page of another site cannot send it with our cookie
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
                throw new CtlException(ExitCode.NOT_REACHABLE, "no answer from " + endpoint.url()
                    + " in time to earlier requests");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CtlException(ExitCode.REFUSED, "interrupted");
        }
    }

    private <T> HttpResponse<T> exchange(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        try {
            return client.send(request, handler);
        } catch (SSLException e) {
            throw new CtlException(ExitCode.NOT_REACHABLE, endpoint.url() + " is not trusted, or speaks no TLS"
                + " (--ca-file names its certificate authority): " + Problems.of(e));
        } catch (HttpTimeoutException e) {
            throw new CtlException(ExitCode.NOT_REACHABLE, "no answer from " + endpoint.url() + " in time");
        } catch (ConnectException e) {
            throw new CtlException(ExitCode.NOT_REACHABLE, "no broker answers at " + endpoint.url()
                + ": " + (isUnresolved(e) ? "there is no such host"
                    : e.getMessage() == null ? "the connection was refused" : e.getMessage()));
        } catch (IOException e) {
            throw new CtlException(ExitCode.NOT_REACHABLE, "the connection to " + endpoint.url() + " failed: "
                + Problems.of(e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new CtlException(ExitCode.REFUSED, "interrupted");
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

    private CtlException refusal(int status, String body) {
        String reason = "HTTP " + status;
        try {
            Item problem = Item.of(Json.read(body));
            reason = problem.has("detail") ? problem.text("detail") : problem.has("title") ? problem.text("title")
                : reason;
        } catch (IOException | CtlException e) {
            reason += ", without a reason that could be read"; // a proxy's page, not a broker's problem
        }
        reason = Table.printable(reason);
        return switch (status) {
            case 401 -> new CtlException(ExitCode.NOT_ALLOWED, status, endpoint.identity().isEmpty()
                ? "the broker wants to know who asks: --token-file, --user or hawserctl login"
                : "the broker does not accept " + endpoint.identity() + ": " + reason);
            case 403 -> new CtlException(ExitCode.NOT_ALLOWED, status, "not allowed: " + reason);
            case 404 -> new CtlException(ExitCode.NOT_FOUND, status, reason);
            case 412 -> new CtlException(ExitCode.CHANGED, status, "refused: " + reason);
            default -> new CtlException(ExitCode.REFUSED, status, (status >= 500 ? "the broker failed: " : "refused: ")
                + reason);
        };
    }

    private static Object read(HttpResponse<String> response) {
        if (response.body().isBlank()) {
            return null;
        }
        try {
            return Json.read(response.body());
        } catch (IOException e) {
            throw new CtlException(ExitCode.REFUSED, "the answer is no JSON: is this a Hawser broker? ("
                + response.headers().firstValue("Content-Type").orElse("no type") + ")");
        }
    }

    @Override
    public void close() {
        client.shutdownNow();
    }
}
