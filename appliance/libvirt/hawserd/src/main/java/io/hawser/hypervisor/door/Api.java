package io.hawser.hypervisor.door;

import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.hypervisor.command.CommandException;
import io.hawser.hypervisor.command.Commands;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.hook.Hooks;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.tenant.Tenant;
import java.io.IOException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/** The requests that hawserd answers at its socket. Any thread; blocks. */
public final class Api {
    private static final Duration LONGEST_TIMEOUT = Duration.ofMinutes(10);

    private final Hooks hooks;
    private final Commands commands;
    private final ExecutorService threads;
    private final Duration hookLimit;
    private final int owner;

    /**
     * An answer.
     *
     * @param body a value that {@link Json} can write.
     */
    record Answer(int status, Object body) {
        static Answer error(int status, String sentence) {
            return new Answer(status, Map.of("error", sentence));
        }
    }

    /**
     * A request.
     *
     * @param uid user id of the calling process, from the kernel.
     * @param arrivedNs time of arrival at the socket, by System.nanoTime(). The request may have waited since then.
     */
    record Request(String method, String path, String body, int uid, long arrivedNs) {}

    /**
     * @param hookLimit the longest time until a hook gets its answer.
     * @param owner user id of hawserd itself.
     */
    public Api(Hooks hooks, Commands commands, ExecutorService threads, Duration hookLimit, int owner) {
        this.hooks = hooks;
        this.commands = commands;
        this.threads = threads;
        this.hookLimit = hookLimit;
        this.owner = owner;
    }

    /** The longest time until a hook gets its answer. */
    Duration hookLimit() {
        return hookLimit;
    }

    /** Answers a request; {@code progress} receives a sentence for each stage of a long command. */
    Answer answer(Request request, Consumer<String> progress) {
        String[] parts = request.path().split("\\?", 2)[0].split("/", -1);
        try {
            if (parts.length == 6 && parts[2].equals("hooks") && parts[1].equals("v1")) {
                return request.method().equals("POST") ? hook(request, parts) : wrongMethod();
            } else if (parts.length == 3 && parts[1].equals("v1") && parts[2].equals("domains")) {
                return request.method().equals("GET") ? new Answer(200, commands.list()) : wrongMethod();
            } else if (parts.length == 5 && parts[1].equals("v1") && parts[2].equals("domains")) {
                return request.method().equals("POST") ? command(request, parts, progress) : wrongMethod();
            }
            return Answer.error(404, "there is no such address: " + request.path());
        } catch (CommandException e) {
            return Answer.error(switch (e.kind()) {
                case NO_DOMAIN -> 404;
                case INVALID -> 400;
                case REFUSED -> 409;
            }, e.getMessage());
        } catch (HypervisorException e) {
            return Answer.error(switch (e.reason()) {
                case DISCONNECTED -> 503;
                case NO_DOMAIN -> 404;
                default -> 409;
            }, e.getMessage());
        } catch (IllegalArgumentException e) {
            return Answer.error(400, e.getMessage());
        }
    }

    private static Answer wrongMethod() {
        return Answer.error(405, "this address does not support the method");
    }

    private Answer hook(Request request, String[] parts) {
        if (request.uid() != 0 && request.uid() != owner) {
            return Answer.error(403, "only root calls hooks: uid=" + request.uid());
        }
        if (!parts[3].equals("qemu") && !parts[3].equals("libxl")) {
            return Answer.error(404, "there is no such driver: " + parts[3]);
        }
        long leftNs = request.arrivedNs() + hookLimit.toNanos() - System.nanoTime();
        if (leftNs <= 0) {
            return Answer.error(503, "hawserd had too many requests to answer this one within " + hookLimit.toSeconds()
                + " s: start the domain again");
        }
        // libvirt holds the domain, and all calls for it, until the hook ends. The limit holds whatever the broker
        // does.
        Future<Optional<String>> answer = threads.submit(() -> hooks.handle(parts[3], parts[4], parts[5],
            request.body()));
        try {
            return answer.get(leftNs, TimeUnit.NANOSECONDS).map(reason -> Answer.error(409, reason))
                .orElse(new Answer(200, Map.of()));
        } catch (TimeoutException e) {
            return Answer.error(503, "the broker did not answer within " + hookLimit.toSeconds() + " s");
        } catch (ExecutionException e) {
            Log.fault("", e.getCause());
            return Answer.error(500, "hawserd has failed; see its log");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Answer.error(503, "hawserd is stopping");
        }
    }

    private Answer command(Request request, String[] parts, Consumer<String> progress) {
        String domain = URLDecoder.decode(parts[3], StandardCharsets.UTF_8);
        Item body;
        try {
            body = request.body().isBlank() ? new Item(Map.of()) : Item.of(Json.read(request.body()));
        } catch (IOException e) {
            return Answer.error(400, "the request is not JSON: " + e.getMessage());
        }
        Object answer = switch (parts[4]) {
            case "attach" -> commands.attach(domain, new Commands.Attach(attributes(body), flag(body, "live"),
                flag(body, "config"), timeout(body)), progress);
            case "detach" -> commands.detach(domain, new Commands.Detach(Boolean.TRUE.equals(flag(body, "force")),
                flag(body, "live"), flag(body, "config"), timeout(body)), progress);
            case "prepare" -> commands.prepare(domain, body.has("region") ? region(body.text("region"))
                : Wish.DEFAULT_REGION_BYTES);
            case "xml" -> commands.xml(domain, attributes(body));
            default -> throw new CommandException(CommandException.Kind.INVALID, "the commands of a domain are attach, "
                + "detach, prepare and xml: command= " + parts[4]);
        };
        if (!parts[4].equals("xml")) {
            Log.info(domain, parts[4] + " by uid " + request.uid());
        }
        return new Answer(200, answer);
    }

    private static Map<String, String> attributes(Item body) {
        Map<String, String> attributes = new LinkedHashMap<>();
        body.item("vgpu").fields().forEach((name, value) -> attributes.put(String.valueOf(name),
            String.valueOf(value)));
        return attributes;
    }

    private static Boolean flag(Item body, String name) {
        return body.fields().get(name) instanceof Boolean flag ? flag : null;
    }

    private static Duration timeout(Item body) {
        if (!body.has("timeoutS")) {
            return Tenant.PLUG_TIMEOUT;
        }
        long seconds = body.number("timeoutS");
        if (seconds < 1 || seconds > LONGEST_TIMEOUT.toSeconds()) {
            throw new CommandException(CommandException.Kind.INVALID, "timeout must be 1 to "
                + LONGEST_TIMEOUT.toSeconds() + " s: timeout=" + seconds);
        }
        return Duration.ofSeconds(seconds);
    }

    private static long region(String text) {
        try {
            return Wish.of(Map.of("region", text), Driver.QEMU).regionBytes();
        } catch (WishException e) {
            throw new CommandException(CommandException.Kind.INVALID, e.getMessage());
        }
    }
}
