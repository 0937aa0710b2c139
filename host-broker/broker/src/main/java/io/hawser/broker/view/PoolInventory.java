package io.hawser.broker.view;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import io.hawser.broker.admin.PoolView;
import io.hawser.broker.model.Labels;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.region.Regions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.VgpuTable;
import jakarta.inject.Inject;
import jakarta.inject.Singleton;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jboss.logging.Logger;

/**
 * What REST and the page show of the pool: this broker's part as it is, that of the others as they have shown it with
 * a heartbeat. A broker that is alone shows itself. Thread-safe; never waits.
 */
@Singleton
public final class PoolInventory {
    private static final Logger LOG = Logger.getLogger(PoolInventory.class);
    private static final int MAX_CHARACTERS = 1_000_000; // width of the database's column

    private final PoolView pool;
    private final GpuInventory gpus;
    private final VgpuInventory vgpus;
    private final VgpuTable table;
    private final SessionRegistry sessions;
    private final Regions regions;
    private final ObjectMapper json;
    private final ObjectReader reader;
    private final Map<String, Parsed> parsed = new ConcurrentHashMap<>();

    /** A text that has been read. */
    private record Parsed(String text, Shown shown) {}

    /** Shows these parts of the broker. */
    @Inject
    public PoolInventory(PoolView pool, GpuInventory gpus, VgpuInventory vgpus, VgpuTable table,
        SessionRegistry sessions, Regions regions, ObjectMapper json) {
        this.pool = pool;
        this.gpus = gpus;
        this.vgpus = vgpus;
        this.table = table;
        this.sessions = sessions;
        this.regions = regions;
        this.json = json;
        // A newer broker may show more.
        reader = json.readerFor(Shown.class).without(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
    }

    /** This broker's part. */
    public Shown own() {
        return new Shown(gpus.list(), vgpus.list(),
            sessions.list().stream().map(session -> SessionInfo.of(session, pool.name())).toList(),
            regions.list().stream().map(region -> RegionInfo.of(region, pool.name())).toList());
    }

    /** This broker's part as a text for the others; without its sessions where they make it too long. */
    public String ownText() {
        Shown own = own();
        String text = text(own);
        return text.length() <= MAX_CHARACTERS ? text
            : text(new Shown(own.gpus(), List.of(), List.of(), List.of()));
    }

    private String text(Shown shown) {
        try {
            return json.writeValueAsString(shown);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The whole pool, this broker first. */
    public Shown all() {
        Shown own = own();
        Map<String, Shown> others = others();
        return new Shown(with(own.gpus(), others, Shown::gpus), withElsewhere(own.vgpus(), others),
            with(own.sessions(), others, Shown::sessions), with(own.regions(), others, Shown::regions));
    }

    /** The part of the broker with this name; null for the whole pool. */
    public Shown of(String broker) {
        Shown all = all();
        return broker == null ? all : new Shown(all.gpus().stream().filter(g -> broker.equals(g.broker())).toList(),
            all.vgpus().stream().filter(v -> broker.equals(v.broker())).toList(),
            all.sessions().stream().filter(s -> broker.equals(s.broker())).toList(),
            all.regions().stream().filter(region -> broker.equals(region.broker())).toList());
    }

    /** The brokers, by number; empty when this one is alone. */
    public List<PeerInfo> brokers() {
        Map<String, Integer> counts = new HashMap<>();
        Set<String> own = table.list().stream().map(view -> view.vgpu().name()).collect(Collectors.toSet());
        counts.put(pool.name(), own.size());
        pool.elsewhere(own).forEach(view -> counts.merge(pool.brokerOf(view.vgpu().name()), 1, Integer::sum));
        return pool.brokers().stream().map(one -> PeerInfo.of(one, counts.getOrDefault(one.name(), 0),
            one.name().equals(pool.name()))).toList();
    }

    /**
     * The vGPUs that have all these labels, by name.
     *
     * @param labels each as {@code KEY=VALUE}; empty for all vGPUs.
     * @param broker name of their broker; null for any.
     * @throws VgpuException of kind INVALID when one is no label.
     */
    public List<VgpuInfo> vgpus(List<String> labels, String broker) throws VgpuException {
        List<VgpuInfo> found = new ArrayList<>();
        for (VgpuInfo vgpu : of(broker).vgpus()) {
            boolean isWanted = true;
            for (String label : labels) {
                isWanted &= Labels.of(vgpu.labels()).contains(label);
            }
            if (isWanted) {
                found.add(vgpu);
            }
        }
        return found;
    }

    /** A vGPU of the pool. */
    public Optional<VgpuInfo> vgpu(String name) {
        Optional<VgpuView> mine = table.find(name);
        return mine.isPresent() ? mine.map(vgpus::info)
            : pool.elsewhere(name).map(view -> elsewhere(view, others()));
    }

    /** A session of the pool. */
    public Optional<SessionInfo> session(long id) {
        return Stream.concat(sessions.find(id).map(found -> SessionInfo.of(found, pool.name())).stream(),
            others().values().stream().flatMap(shown -> shown.sessions().stream()).filter(one -> one.id() == id))
            .findFirst();
    }

    private List<VgpuInfo> withElsewhere(List<VgpuInfo> own, Map<String, Shown> others) {
        Set<String> names = own.stream().map(VgpuInfo::name).collect(Collectors.toSet());
        return Stream.concat(own.stream(), pool.elsewhere(names).stream().map(view -> elsewhere(view, others)))
            .sorted(Comparator.comparing(VgpuInfo::name)).toList();
    }

    /** A vGPU as its broker shows it; as the database has it, if the broker has not shown this state yet. */
    private VgpuInfo elsewhere(VgpuView view, Map<String, Shown> others) {
        VgpuInfo stored = vgpus.info(view);
        Shown its = others.getOrDefault(stored.broker(), Shown.NOTHING);
        return view.state() != VgpuState.READY ? stored : its.vgpus().stream()
            .filter(one -> one.name().equals(stored.name()) && one.id().equals(stored.id())
                && one.changed().equals(stored.changed()))
            .findFirst().orElse(stored);
    }

    private static <T> List<T> with(List<T> own, Map<String, Shown> others, Function<Shown, List<T>> part) {
        return Stream.concat(own.stream(), others.values().stream().flatMap(shown -> part.apply(shown).stream()))
            .toList();
    }

    /** The parts that other brokers have shown, without the silent ones, by name. */
    private Map<String, Shown> others() {
        Map<String, String> texts = pool.pictures();
        Map<String, Shown> others = new HashMap<>();
        pool.brokers().stream().filter(one -> !one.isSilent() && texts.containsKey(one.name()))
            .forEach(one -> others.put(one.name(), shown(one.name(), texts.get(one.name()))));
        return others;
    }

    private Shown shown(String broker, String text) {
        Parsed last = parsed.get(broker);
        if (last == null || !last.text.equals(text)) {
            last = new Parsed(text, read(broker, text));
            parsed.put(broker, last);
        }
        return last.shown;
    }

    private Shown read(String broker, String text) {
        if (text.isEmpty()) {
            return Shown.NOTHING;
        }
        try {
            return reader.readValue(text);
        } catch (JsonProcessingException e) {
            LOG.warnf("what broker %s shows cannot be read: %s", broker, e.getOriginalMessage());
            return Shown.NOTHING;
        }
    }
}
