package io.hawser.hypervisor.broker;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Endpoint;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * Requests vGPUs, regions and tokens from the broker. Each operation can be repeated: it finds what exists already, and
 * accepts that something is already gone. Any thread; for one domain one thread at a time. Each operation may throw
 * {@link ShareException}.
 */
public final class Shares implements AutoCloseable {
    private static final String BROKER = "/api/v1/broker";
    private static final String VGPUS = "/api/v1/vgpus";
    private static final String REGIONS = "/api/v1/regions";
    private static final String NOTE = "hawserd";
    private static final int CHANGED = 412; // HTTP status: the vGPU has another owner than expected
    private static final int NAMING_ATTEMPTS = 4; // another client may take a free name first

    private final Supplier<Endpoint> endpoints;
    private final Duration answerLimit;
    private ApiClient client;
    private boolean isStale;

    /**
     * A region of the broker.
     *
     * @param failed whether the broker no longer serves it, so that hawserd must make it again.
     */
    public record Region(String name, String vgpu, String path, long sizeBytes, int slots, boolean failed) {}

    /**
     * The broker's state at one moment.
     *
     * @param names of all its vGPUs, of every owner.
     * @param claims of domains, of every host.
     */
    public record Picture(Set<String> names, List<Claim> claims, Map<String, Region> regions) {
        /** A domain's vGPU: of this host rather than of another, the older name first. */
        public Optional<Claim> claim(UUID domain, String host) {
            return held(domain, host).stream().findFirst()
                .or(() -> claims.stream().filter(c -> c.owner().domain().equals(domain)).findFirst());
        }

        /** A domain's vGPUs that name the host as owner, the older name first. */
        public List<Claim> held(UUID domain, String host) {
            return claims.stream().filter(c -> c.owner().domain().equals(domain) && c.owner().concerns(host)).toList();
        }
    }

    /**
     * Looks the broker up again whenever there is no connection to it.
     *
     * @param endpoints finds the broker; throws {@link ClientException} if there is none.
     */
    public Shares(Supplier<Endpoint> endpoints, Duration answerLimit) {
        this.endpoints = endpoints;
        this.answerLimit = answerLimit;
    }

    /** Reads all vGPUs, in a pool those of all brokers, and the regions of this host's broker. */
    public Picture readPicture() throws ShareException {
        List<Item> vgpus = ask(c -> Item.list(c.get(VGPUS)));
        String own = brokerName();
        List<Item> regions = ask(c -> Item.list(c.get(own.isEmpty() ? REGIONS
            : REGIONS + "?broker=" + ApiClient.segment(own))));
        List<Claim> claims = new ArrayList<>();
        vgpus.forEach(vgpu -> claim(vgpu).ifPresent(claims::add));
        Map<String, Region> byName = new HashMap<>();
        regions.forEach(r -> byName.put(r.text("name"), new Region(r.text("name"), r.text("vgpu"), r.text("path"),
            r.number("sizeBytes"), (int) r.number("slots"), !r.text("state").equals("serving"))));
        return new Picture(vgpus.stream().map(v -> v.text("name")).collect(Collectors.toSet()), claims, byName);
    }

    private static Optional<Claim> claim(Item vgpu) {
        Item owner = vgpu.item("owner");
        return Claim.Owner.parse(owner.text("kind"), owner.text("id")).map(parsed -> new Claim(vgpu.text("name"),
            parsed, vgpu.number("memoryBytes"), (int) vgpu.number("computeShare"), vgpu.text("mode"),
            vgpu.text("gpus"), vgpu.text("swappable").equals("true"), List.of(vgpu.text("carriers").split(",")),
            (int) vgpu.number("maxSessions"),
            (int) vgpu.number("sessions"), (int) vgpu.number("tokens"), vgpu.text("state"), vgpu.text("problem"),
            vgpu.text("rdma").equals("true")));
    }

    /** Makes the vGPU of a domain. */
    public Claim make(UUID domain, String domainName, String host, Wish wish, Picture picture) throws ShareException {
        Set<String> names = picture.names();
        for (int attempt = 0;; attempt++) {
            String name = name(domain, domainName, wish, names);
            try {
                Map<String, Object> body = properties(wish, false);
                body.put("name", name);
                body.put("owner", owner(new Claim.Owner(domain, host, "")));
                String own = wish.transport() == Wish.Transport.SHM ? brokerName() : "";
                if (!own.isEmpty()) {
                    body.put("broker", own); // shared memory does not leave the machine
                }
                Item made = ask(c -> Item.of(c.change("POST", VGPUS, body)));
                return claim(made).orElseThrow(() -> new ShareException(ShareException.Reason.REFUSED,
                    "the broker stores no owners; its version must match hawserd's"));
            } catch (ShareException e) {
                names = readPicture().names();
                if (e.reason() != ShareException.Reason.REFUSED || !names.contains(name)
                    || attempt == NAMING_ATTEMPTS) {
                    throw e;
                }
            }
        }
    }

    private static String name(UUID domain, String domainName, Wish wish, Set<String> taken) throws ShareException {
        if (!wish.name().isEmpty()) {
            if (taken.contains(wish.name())) {
                throw new ShareException(ShareException.Reason.REFUSED, "the broker already has a vGPU of the name "
                    + wish.name() + ", of another owner");
            }
            return wish.name();
        }
        String first = Wish.standardName(domainName, domain, false);
        String second = Wish.standardName(domainName, domain, true);
        if (taken.contains(first) && taken.contains(second)) {
            throw new ShareException(ShareException.Reason.REFUSED, "the broker already has vGPUs of the names "
                + first + " and " + second + ", of other owners: set another name in the metadata");
        }
        return taken.contains(first) ? second : first;
    }

    /** @param rdma whether the vGPU permits RDMA now. */
    private static Map<String, Object> properties(Wish wish, boolean rdma) {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("memoryBytes", wish.memoryBytes());
        body.put("computeShare", wish.share());
        body.put("mode", wish.mode().label());
        body.put("gpus", wish.gpus());
        body.put("swappable", wish.swappable());
        body.put("carriers", List.of(wish.carrier()));
        body.put("maxSessions", wish.sessions());
        boolean wanted = wish.transport() == Wish.Transport.RDMA;
        if (wanted != rdma) { // a broker without RDMA knows no such property
            body.put("rdma", wanted);
        }
        return body;
    }

    private static Map<String, Object> owner(Claim.Owner owner) {
        return Map.of("kind", "domain", "id", owner.id());
    }

    /** Changes a vGPU to the wish; its sessions continue. Fails with CHANGED if the owner is no longer the claim's. */
    public Claim change(Claim claim, Wish wish) throws ShareException {
        return patch(claim, properties(wish, claim.rdma()));
    }

    /** Writes the new owner of a vGPU. Fails with CHANGED if the owner is no longer the claim's. */
    public Claim give(Claim claim, Claim.Owner owner) throws ShareException {
        return patch(claim, Map.of("owner", owner(owner)));
    }

    private Claim patch(Claim claim, Map<String, Object> changes) throws ShareException {
        Map<String, Object> body = new LinkedHashMap<>(changes);
        body.put("expectedOwner", claim.owner().id());
        return ask(c -> claim(Item.of(c.change("PATCH", path(claim), body))).orElse(claim));
    }

    /** Ends a vGPU with its sessions, regions and tokens. Fails with CHANGED if the owner is no longer the claim's. */
    public void end(Claim claim) throws ShareException {
        acceptGone(() -> ask(c -> c.change("DELETE", path(claim) + "?force=true&expectedOwner="
            + ApiClient.segment(claim.owner().id()), null)));
    }

    /** Makes the broker serve a domain's region. No region of that name may exist. */
    public void makeRegion(Claim claim, String name, String place, Wish wish) throws ShareException {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("name", name);
        body.put("path", place);
        body.put("vgpu", claim.vgpu());
        body.put("sizeBytes", wish.regionBytes());
        body.put("slots", wish.sessions());
        ask(c -> c.change("POST", REGIONS, body));
    }

    /** Ends a region and its sessions. */
    public void endRegion(String name) throws ShareException {
        acceptGone(() -> ask(c -> c.change("DELETE", REGIONS + "/" + ApiClient.segment(name), null)));
    }

    /** Makes a token of a vGPU: its key, a dot, its secret. */
    public String makeToken(Claim claim) throws ShareException {
        return ask(c -> Item.of(c.change("POST", path(claim) + "/tokens", Map.of("note", NOTE))).text("token"));
    }

    /** Whether a vGPU has a token of that key. */
    public boolean hasToken(Claim claim, String keyId) throws ShareException {
        return ask(c -> Item.list(c.get(path(claim) + "/tokens"))).stream()
            .anyMatch(token -> token.text("keyId").equals(keyId));
    }

    /** The broker's name in its pool; empty when it is alone, or an older version. */
    private String brokerName() throws ShareException {
        return ask(c -> Item.of(c.get(BROKER))).text("name");
    }

    /** The broker's address for guests: {@code host:port}, or {@code tls://host:port} if it serves guests by TLS. */
    public String guestEndpoint() throws ShareException {
        Item broker = ask(c -> Item.of(c.get(BROKER)));
        return broker.text("guestTlsEndpoint").isEmpty() ? broker.text("guestEndpoint")
            : "tls://" + broker.text("guestTlsEndpoint");
    }

    /** The broker's address, for messages. */
    public synchronized String where() {
        return client == null ? "" : client.endpoint().url().toString();
    }

    /** Part of an operation whose target may already be gone. */
    private interface Step {
        void run() throws ShareException;
    }

    private static void acceptGone(Step step) throws ShareException {
        try {
            step.run();
        } catch (ShareException e) {
            if (!(e.getCause() instanceof ClientException known) || known.failure() != Failure.NOT_FOUND) {
                throw e;
            }
        }
    }

    private static String path(Claim claim) {
        return VGPUS + "/" + ApiClient.segment(claim.vgpu());
    }

    private <T> T ask(Function<ApiClient, T> question) throws ShareException {
        try {
            return question.apply(client());
        } catch (ClientException e) {
            boolean unknown = e.status() == 401 || e.status() == 403;
            if (e.failure() == Failure.NOT_REACHABLE || unknown) {
                markStale(); // its ports, certificates or tokens may have changed
            }
            boolean away = e.status() == 0 || e.status() >= 500 || unknown;
            throw new ShareException(away ? ShareException.Reason.AWAY : e.status() == CHANGED
                ? ShareException.Reason.CHANGED : ShareException.Reason.REFUSED,
                (away && !e.getMessage().contains("broker") ? "the broker does not answer: " : "")
                    + e.getMessage().replaceFirst("^refused: ", ""),
                e);
        }
    }

    private synchronized ApiClient client() {
        if (client == null || isStale) {
            Endpoint found = endpoints.get();
            // A certificate may have changed under the same name. The old client is not closed: other threads may still
            // use it.
            if (client == null || !found.equals(client.endpoint()) || found.caFile() != null) {
                client = new ApiClient(found, answerLimit);
            }
            isStale = false;
        }
        return client;
    }

    private synchronized void markStale() {
        isStale = true;
    }

    @Override
    public synchronized void close() {
        if (client != null) {
            client.close();
        }
    }
}
