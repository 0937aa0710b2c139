package io.hawser.broker.admin;

import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.PeerGpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.session.Admission;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.store.PoolLog;
import io.hawser.broker.store.TokenStore;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.PoolPlacement;
import io.hawser.broker.vgpu.PoolTable;
import io.hawser.broker.vgpu.VgpuTable;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * This broker as a member of a pool (pool.md). It keeps the tables equal to the database, marks vGPUs as in use, and
 * writes its heartbeat; {@link PoolPlaces} places vGPUs. Thread-safe where a method names no thread.
 */
public final class BrokerPool implements Admission, Acts.Shared {
    private static final Logger LOG = Logger.getLogger(BrokerPool.class);
    /** Time without a heartbeat after which this broker admits nobody; ends before the others' patience. */
    private static final long MAX_SILENCE_NS = TimeUnit.SECONDS.toNanos(10);
    private static final int IDLE_TICKS = 30;
    private static final long WANTED_NS = TimeUnit.SECONDS.toNanos(10);
    private static final Shown NOTHING = new Shown(0, ""); // epochs begin with 1
    private static final PoolLog.Place NOWHERE = new PoolLog.Place(-1, 0); // no log has it, so all is read

    private final Executor loop;
    private final Acts acts;
    private final Database database;
    private final VgpuTable vgpus;
    private final TokenTable tokens;
    private final VgpuService service;
    private final Predicate<String> hasRegion;
    private final Receptions receptions;
    private final PoolTable pool = new PoolTable();
    private final Set<String> marked = new HashSet<>(); // own vGPUs that the database has as in use; event loop only
    private final Map<String, Integer> idleLooks = new HashMap<>(); // of marked vGPUs; event loop only
    private final Silences silences = new Silences(); // the heartbeat's thread only
    private PoolLog.Place seen = NOWHERE; // acts' thread only
    private long published; // the revision in this broker's row; acts' thread only
    private long publishedNs = System.nanoTime() - Heartbeat.MOST_PACE_NS;
    private volatile long appliedRevision;
    private volatile long beatNs = System.nanoTime();
    private volatile boolean isReached = true; // the last heartbeat succeeded
    private volatile String fenced = ""; // why this process is no member any more
    private volatile PeerBroker me;
    private volatile PeerBroker.Addresses addresses;
    private volatile List<PeerGpu> gpus = List.of();
    private volatile Supplier<String> picture = () -> "";
    private volatile Map<String, String> pictures = Map.of();
    private volatile long wantedNs = System.nanoTime() - WANTED_NS;
    private int ticks; // event loop only
    private volatile List<PeerBroker> brokers = List.of();
    private volatile Map<String, PeerBroker> brokersById = Map.of(); // views ask for each vGPU's broker
    private final AtomicReference<Shown> shown = new AtomicReference<>(NOTHING);

    /** The picture that the database has. */
    private record Shown(long epoch, String text) {}

    /**
     * Makes a member that has registered.
     *
     * @param me as registered.
     * @param hasRegion whether a vGPU has a region; event loop only.
     * @param receptions learn of vGPUs that the pool gives to this broker.
     */
    BrokerPool(Executor loop, Acts acts, Database database, VgpuTable vgpus, TokenTable tokens, VgpuService service,
        Predicate<String> hasRegion, Receptions receptions, PeerBroker me) {
        this.loop = loop;
        this.acts = acts;
        this.database = database;
        this.vgpus = vgpus;
        this.tokens = tokens;
        this.service = service;
        this.hasRegion = hasRegion;
        this.receptions = receptions;
        this.me = me;
        addresses = new PeerBroker.Addresses(me.guest(), me.guestTls(), me.http());
    }

    // The pool for its readers.

    /** This broker. */
    public PeerBroker me() {
        return me;
    }

    /** All brokers by number, with this one. */
    public List<PeerBroker> brokers() {
        return brokers;
    }

    /** Why this broker admits no guests, or only some; empty while it is a member in good standing. */
    public String problem() {
        if (!fenced.isEmpty()) {
            return fenced;
        }
        long silentNs = System.nanoTime() - beatNs;
        if (silentNs > MAX_SILENCE_NS) {
            return "the broker admits no guests: it has not reached the pool's database for "
                + TimeUnit.NANOSECONDS.toSeconds(silentNs) + " s";
        }
        return isReached ? "" : "the broker does not reach the pool's database, and admits guests only to vGPUs that "
            + "are in use";
    }

    /** Whether this broker admits some guests in spite of its problem. */
    boolean admitsSome() {
        return fenced.isEmpty() && System.nanoTime() - beatNs <= MAX_SILENCE_NS;
    }

    /** The pictures by the brokers' names. */
    Map<String, String> picturesByName() {
        Map<String, String> named = new LinkedHashMap<>();
        pictures().forEach((id, text) -> broker(id).ifPresent(one -> named.put(one.name(), text)));
        return named;
    }

    /**
     * The vGPUs besides this broker's, by name.
     *
     * @param own names of this broker's vGPUs, read before. A vGPU that has come or gone since then is shown once.
     */
    public List<VgpuView> elsewhere(Set<String> own) {
        Map<String, Integer> counts = tokens.all().stream().collect(Collectors.toMap(Token::vgpu, token -> 1,
            Integer::sum));
        return pool.all().stream().filter(row -> !own.contains(row.vgpu().name())).map(row -> view(row,
            counts.getOrDefault(row.vgpu().name(), 0))).toList();
    }

    /** A vGPU that this broker does not have. */
    public Optional<VgpuView> elsewhere(String name) {
        return notMine(name).map(row -> view(row, tokens.of(name).size()));
    }

    /** Name of a vGPU's broker; empty when it has none. */
    public String brokerName(String vgpu) {
        return pool.find(vgpu).flatMap(row -> broker(row.broker())).map(PeerBroker::name).orElse(PeerBroker.NONE);
    }

    /** A vGPU of the pool that another broker has, or none, as far as the tables say. */
    Optional<VgpuStore.Kept> notMine(String vgpu) {
        return pool.find(vgpu).filter(row -> !isMine(row));
    }

    /** The other broker that has a vGPU, also a silent one; empty when this broker or none has it. */
    Optional<PeerBroker> holder(String vgpu) {
        return notMine(vgpu).flatMap(row -> broker(row.broker()));
    }

    /**
     * The address of the other broker that has a vGPU.
     *
     * @return null when this broker has it, or nobody who answers.
     */
    public String addressOf(String vgpu, boolean overTls) {
        return holder(vgpu).filter(broker -> !broker.isSilent())
            .map(broker -> overTls ? broker.guestTls() : broker.guest()).filter(address -> !address.isEmpty())
            .orElse(null);
    }

    /** The vGPUs of all brokers. */
    PoolTable table() {
        return pool;
    }

    /** The newest revision that the tables have. */
    long appliedRevision() {
        return appliedRevision;
    }

    /** Whether the GPUs have changed, or a vGPU of this broker has none. Acts' thread only. */
    boolean needsPlaces() throws VgpuException {
        return acts.onLoop(vgpus::hasHomeless);
    }

    /** Whether this process is a member. */
    boolean isMember() {
        return fenced.isEmpty();
    }

    /** Whether the pool has a vGPU. */
    boolean has(String vgpu) {
        return pool.find(vgpu).isPresent();
    }

    boolean isMine(VgpuStore.Kept row) {
        return row.broker().equals(me.id());
    }

    /** A broker by its id. */
    Optional<PeerBroker> broker(String id) {
        return Optional.ofNullable(brokersById.get(id));
    }

    private VgpuView view(VgpuStore.Kept row, int tokenCount) {
        String problem = problem(row);
        VgpuState state = !problem.isEmpty() ? VgpuState.UNPLACED : row.placed().isEmpty() ? VgpuState.WAITING
            : VgpuState.READY;
        return new VgpuView(row.vgpu(), state, problem, state == VgpuState.READY ? row.placed() : List.of(), 0,
            tokenCount);
    }

    private String problem(VgpuStore.Kept row) {
        Optional<PeerBroker> its = broker(row.broker());
        if (row.broker().isEmpty() || its.isEmpty()) {
            return "no broker of the pool has the vGPU";
        }
        return its.get().isSilent() ? "its broker is silent: broker=" + its.get().name() + " silentMs="
            + its.get().silence().toMillis() + (row.inUse() ? " inUse=true" : "") : "";
    }

    // Admission.

    @Override
    public String objection(String vgpu) {
        if (!admitsSome()) {
            return problem();
        }
        return notMine(vgpu).map(row -> {
            String problem = problem(row);
            return "another broker has the vGPU: vgpu=" + vgpu + ": "
                + (problem.isEmpty() ? "broker=" + brokerName(vgpu) : problem);
        }).orElse(null);
    }

    @Override
    public CompletableFuture<Void> markInUse(String vgpu) {
        if (marked.contains(vgpu)) {
            return CompletableFuture.completedFuture(null);
        }
        if (!isReached) {
            return CompletableFuture.failedFuture(new VgpuException(VgpuException.Kind.UNAVAILABLE, problem()));
        }
        CompletableFuture<Void> result = new CompletableFuture<>();
        acts.<Void>submit(() -> {
            acts.write(Set.of(PoolLog.Key.vgpu(vgpu)), connection -> {
                if (acts.onLoop(() -> !vgpus.has(vgpu))) {
                    throw VgpuException.missing(vgpu); // taken or deleted, which the transaction's begin has shown
                }
                VgpuStore.mark(connection, vgpu, true);
                return null;
            });
            return null;
        }).whenComplete((now, failure) -> loop.execute(() -> {
            if (failure == null) {
                marked.add(vgpu);
                result.complete(null);
            } else {
                result.completeExceptionally(failure);
            }
        }));
        return result;
    }

    /** Removes the marks of vGPUs that had neither session nor region at two looks. Event loop only; periodic. */
    void unmarkIdle() {
        for (String vgpu : List.copyOf(marked)) {
            if (isIdle(vgpu) && isReached) {
                if (idleLooks.merge(vgpu, 1, Integer::sum) > 1) {
                    idleLooks.remove(vgpu);
                    acts.submit(() -> unmark(vgpu));
                }
            } else {
                idleLooks.remove(vgpu);
            }
        }
    }

    private Void unmark(String vgpu) throws VgpuException {
        return acts.write(Set.of(PoolLog.Key.vgpu(vgpu)), connection -> {
            // From here to the end of this act a guest waits for its own mark, which is a later act.
            if (acts.onLoop(() -> vgpus.has(vgpu) && isIdle(vgpu) && marked.remove(vgpu))) {
                VgpuStore.mark(connection, vgpu, false);
            }
            return null;
        });
    }

    /**
     * Removes the marks of all vGPUs, at the broker's end and after that of its sessions: others may take the vGPUs
     * then. Completes also when the database does not answer.
     */
    CompletableFuture<Void> unmarkAll() {
        return acts.<Void>submit(() -> {
            Set<String> all = acts.onLoop(() -> Set.copyOf(marked));
            acts.write(all.stream().map(PoolLog.Key::vgpu).collect(Collectors.toSet()), connection -> {
                for (String vgpu : all) {
                    if (acts.onLoop(() -> vgpus.find(vgpu)).isPresent()) {
                        VgpuStore.mark(connection, vgpu, false);
                    }
                }
                return null;
            });
            return null;
        }).exceptionally(failure -> {
            LOG.warnf("the pool still counts this broker's vGPUs as in use: %s", failure.getMessage());
            return null;
        });
    }

    private boolean isIdle(String vgpu) {
        return vgpus.find(vgpu).map(view -> view.sessions() == 0).orElse(true) && !hasRegion.test(vgpu);
    }

    // The transactions of acts.

    @Override
    public void enter(Connection connection) throws SQLException, VgpuException {
        PeerStore.Entry entry = PeerStore.enter(connection, me.id(), seen);
        OptionalLong epoch = entry.epoch();
        if (!fenced.isEmpty() || epoch.isEmpty() || epoch.getAsLong() > me.epoch()) {
            fence(epoch);
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, fenced);
        }
        if (epoch.getAsLong() < me.epoch()) {
            LOG.errorf("the pool's database has fallen back to an older state, which counts: epoch=%d its=%d",
                me.epoch(), epoch.getAsLong());
            me = PeerStore.register(connection, me);
            apply(connection, PoolLog.since(connection, NOWHERE));
        } else {
            apply(connection, entry.news());
        }
        Map<String, List<String>> moved = acts.onLoop(service::settle);
        for (Map.Entry<String, List<String>> place : moved.entrySet()) {
            VgpuStore.place(connection, place.getKey(), place.getValue());
        }
        if (!moved.isEmpty()) {
            log(connection, moved.keySet().stream().map(PoolLog.Key::vgpu).collect(Collectors.toSet()));
        }
    }

    @Override
    public void log(Connection connection, Set<PoolLog.Key> changed) throws SQLException {
        PoolLog.add(connection, changed);
    }

    @Override
    public void committed() {
        try {
            catchUp();
            if (System.nanoTime() - publishedNs > Heartbeat.paceNs(brokers.size())) {
                publish(); // the heartbeat's thread does so, too, but behind all acts that wait
            }
        } catch (SQLException | VgpuException e) {
            LOG.debugf("the change is committed, but could not be read yet: %s", e.getMessage()); // the poll reads it
        }
    }

    @Override
    public void uncertain() {
        seen = NOWHERE;
    }

    /** Reads the changes of all brokers, and publishes that it has. Acts' thread only. */
    void follow() throws SQLException, VgpuException {
        catchUp();
        publish();
    }

    private void publish() throws SQLException {
        publishedNs = System.nanoTime();
        if (published != appliedRevision) {
            long revision = appliedRevision;
            database.transact(connection -> {
                PeerStore.applied(connection, me.id(), me.epoch(), revision);
                return null;
            });
            published = revision;
        }
    }

    private void catchUp() throws SQLException, VgpuException {
        if (!fenced.isEmpty()) {
            return;
        }
        try {
            database.read(connection -> {
                try {
                    apply(connection, PoolLog.since(connection, seen));
                    return null;
                } catch (VgpuException e) {
                    throw new SQLException(e);
                }
            });
        } catch (SQLException e) {
            if (e.getCause() instanceof VgpuException known) {
                throw known;
            }
            throw e;
        }
    }

    private void apply(Connection connection, PoolLog.News news) throws SQLException, VgpuException {
        if (!news.isComplete()) {
            shown.set(NOTHING); // the database may have fallen back to an older picture
            List<VgpuStore.Kept> rows = VgpuStore.all(connection);
            List<Token> all = TokenStore.all(connection);
            acts.onLoop(() -> {
                replace(rows, all);
                service.refresh();
                return null;
            });
        } else if (!news.keys().isEmpty()) {
            Map<String, Optional<VgpuStore.Kept>> rows = new HashMap<>();
            Map<String, Optional<Token>> changed = new HashMap<>();
            for (PoolLog.Key key : news.keys()) {
                if (key.kind() == PoolLog.Kind.VGPU) {
                    rows.put(key.name(), Optional.empty());
                } else {
                    changed.put(key.name(), TokenStore.find(connection, key.name()));
                }
            }
            if (!rows.isEmpty()) {
                VgpuStore.find(connection, rows.keySet())
                    .forEach(row -> rows.put(row.vgpu().name(), Optional.of(row)));
            }
            acts.onLoop(() -> {
                rows.forEach(this::apply);
                changed.forEach(this::applyToken);
                service.refresh();
                return null;
            });
        }
        seen = news.last();
        appliedRevision = seen.revision();
    }

    /** Makes the tables equal to the database. Event loop only. */
    private void replace(Collection<VgpuStore.Kept> rows, Collection<Token> all) {
        Set<String> names = rows.stream().map(row -> row.vgpu().name()).collect(Collectors.toSet());
        pool.all().stream().map(row -> row.vgpu().name()).filter(name -> !names.contains(name)).toList()
            .forEach(name -> apply(name, Optional.empty()));
        vgpus.list().stream().map(view -> view.vgpu().name()).filter(name -> !names.contains(name))
            .forEach(name -> apply(name, Optional.empty()));
        rows.forEach(row -> apply(row.vgpu().name(), Optional.of(row)));
        Set<String> keyIds = all.stream().map(Token::keyId).collect(Collectors.toSet());
        tokens.all().stream().map(Token::keyId).filter(keyId -> !keyIds.contains(keyId))
            .forEach(keyId -> applyToken(keyId, Optional.empty()));
        all.forEach(token -> applyToken(token.keyId(), Optional.of(token)));
    }

    private void apply(String name, Optional<VgpuStore.Kept> row) {
        if (row.isPresent()) {
            pool.put(row.get());
        } else {
            pool.remove(name);
            tokens.removeAll(name);
        }
        if (row.isPresent() && isMine(row.get())) {
            vgpus.synchronize(row.get().vgpu(), row.get().placed());
            vgpus.setTokenCount(name, tokens.count(name));
            receptions.arrived(name);
            if (row.get().inUse()) {
                marked.add(name);
            } else if (marked.remove(name) && !isIdle(name)) {
                markInUse(name); // the database has fallen back to a state before the mark
            }
        } else if (vgpus.find(name).isPresent()) {
            marked.remove(name);
            service.drop(name, row.isEmpty() ? "the vGPU is deleted" : "another broker of the pool has the vGPU");
        }
    }

    private void applyToken(String keyId, Optional<Token> row) {
        Optional<Token> before = tokens.find(keyId);
        if (row.isPresent() && before.isEmpty()) {
            vgpus.setTokenCount(row.get().vgpu(), tokens.add(row.get()));
        } else if (row.isEmpty() && before.isPresent()) {
            vgpus.setTokenCount(before.get().vgpu(), tokens.remove(before.get()));
            service.endSessionsOfToken(keyId);
        }
    }

    // The heartbeat's thread.

    /** Computes what the next heartbeat publishes of the GPUs, and removes idle marks. Event loop only; each second. */
    void tick() {
        gpus = PoolPlacement.published(vgpus.present(), vgpus.list());
        if (++ticks % IDLE_TICKS == 0) {
            unmarkIdle();
        }
    }

    /** Sets the source of what each heartbeat shows of this broker; its texts are bounded by the database's column. */
    public void setPicture(Supplier<String> source) {
        picture = source;
    }

    /**
     * What the other brokers have shown with a heartbeat, by their ids; at most 4 s old. Only while somebody asks does
     * this broker read it, so the first answer after a while is empty.
     */
    public Map<String, String> pictures() {
        wantedNs = System.nanoTime();
        return pictures;
    }

    /** Sets the addresses that heartbeats publish. */
    public void setAddresses(PeerBroker.Addresses now) {
        addresses = now;
    }

    /** Writes the heartbeat and reads those of the others. The heartbeat's thread only. */
    void beat() {
        if (!fenced.isEmpty()) {
            return;
        }
        PeerBroker now = me.with(appliedRevision, addresses, gpus);
        Shown before = shown.get();
        Shown next = new Shown(now.epoch(), picture.get()); // may take long, so not in the transaction
        try {
            List<PeerBroker> all = database.transact(connection -> {
                PeerStore.relax(connection);
                if (PeerStore.beat(connection, now)) {
                    if (!next.equals(before)) {
                        PeerStore.show(connection, now.id(), now.epoch(), next.text);
                    }
                    pictures = System.nanoTime() - wantedNs < WANTED_NS ? PeerStore.shown(connection, now.id())
                        : Map.of();
                    return PeerStore.all(connection);
                }
                OptionalLong epoch = PeerStore.epoch(connection, now.id());
                if (epoch.isEmpty() || epoch.getAsLong() > me.epoch()) {
                    fence(epoch);
                }
                return List.of();
            });
            if (all.isEmpty()) {
                acts.submit(() -> acts.write(Set.of(), connection -> null)); // an older epoch: registers again
                return;
            }
            shown.compareAndSet(before, next);
            long time = System.nanoTime();
            List<PeerBroker> observed = all.stream().map(one -> silences.observed(one, time)).toList();
            brokersById = observed.stream().collect(Collectors.toMap(PeerBroker::id, one -> one));
            brokers = observed;
            beatNs = time;
            if (!isReached) {
                LOG.info("the broker reaches the pool's database again");
            }
            isReached = true;
        } catch (SQLException e) {
            if (isReached) {
                LOG.errorf("the broker does not reach the pool's database: %s", e.getMessage());
            }
            isReached = false;
        }
    }

    /** Ends this process's membership: another process has its place, or the pool has removed it. Any thread. */
    private void fence(OptionalLong epoch) {
        if (!fenced.isEmpty()) {
            return;
        }
        fenced = "the broker is no member of its pool any more and admits no guests: "
            + (epoch.isEmpty() ? "it has been removed" : "a later process has its identity: epoch=" + me.epoch()
                + " itsEpoch=" + epoch.getAsLong())
            + " (a restart registers it again)";
        LOG.error(fenced);
        loop.execute(() -> vgpus.list().forEach(view -> service.drop(view.vgpu().name(), fenced)));
    }
}
