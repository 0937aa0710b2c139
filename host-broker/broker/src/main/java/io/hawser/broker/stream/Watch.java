package io.hawser.broker.stream;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.events.Event;
import io.hawser.broker.events.EventFeed;
import io.hawser.broker.events.EventLog;
import io.hawser.broker.history.History;
import io.hawser.broker.history.HistoryInfo;
import io.hawser.broker.history.Sample;
import io.hawser.broker.history.Sampler;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.SessionInfo;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jboss.logging.Logger;

/**
 * Reads the broker's state once a second on its own thread. It records the history, sends changes to the clients of the
 * stream, and sends events at once. The broker's event loop never waits for it.
 */
@ApplicationScoped
public class Watch {
    private static final Logger LOG = Logger.getLogger(Watch.class);
    private static final long SECOND_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long STOP_LIMIT_MS = 2000;

    private final EventLog events = new EventLog(System::nanoTime);
    private final Notices notices = new Notices(events);
    private final Sampler sampler = new Sampler();
    private final long startNs = System.nanoTime();
    private final History history = new History(tick(startNs));
    private final PictureSource pictures;
    private final ObjectMapper json;
    private final Hub hub;
    private final Thread thread = new Thread(this::run, "hawser-watch");
    private volatile boolean stopping;
    // Only the thread uses the fields below.
    private EventFeed feed;
    private Picture last;
    private Picture shown; // to the clients; null without one
    private Frame lastFrame;
    private long sampledNs = startNs;

    /** Makes the watch, with the maximum of clients from the settings. */
    @Inject
    public Watch(PictureSource pictures, ObjectMapper json, BrokerConfig config) {
        this.pictures = pictures;
        this.json = json;
        hub = new Hub(config.stream().maxClients(), System::nanoTime, () -> LockSupport.unpark(thread));
        thread.setDaemon(true);
    }

    /** The log of events; other parts of the broker add to it. */
    public EventLog events() {
        return events;
    }

    /** Starts the thread. */
    public void start(EventFeed source) {
        feed = source;
        events.setReader(thread);
        thread.start();
    }

    /** Ends all streams and the thread. */
    public void stop() {
        stopping = true;
        hub.close();
        LockSupport.unpark(thread);
        try {
            thread.join(STOP_LIMIT_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Whether the stream has its maximum of clients. */
    public boolean isFull() {
        return hub.isFull();
    }

    /** Number of clients. */
    public int clients() {
        return hub.size();
    }

    /**
     * Opens a stream for another client.
     *
     * @param executor sends its frames; runs one task after the other.
     * @param isAuthorized whether the client may still watch; checked from time to time.
     */
    Flow.Publisher<Frame> open(Executor executor, BooleanSupplier isAuthorized) {
        return hub.open(executor, isAuthorized);
    }

    /** History of the broker, a GPU or a vGPU. */
    HistoryInfo history(History.Key key, int seconds) {
        return history.of(key, seconds, Instant.now());
    }

    /** Seconds of a monotonic clock, plus a day, so that times before the start are not negative. */
    private long tick(long nowNs) {
        return TimeUnit.DAYS.toSeconds(1) + (nowNs - startNs) / SECOND_NS;
    }

    private void run() {
        long nextNs = startNs;
        while (!stopping) {
            try {
                long now = System.nanoTime();
                if (now - nextNs >= 0) {
                    nextNs = Math.max(nextNs + SECOND_NS, now - SECOND_NS);
                    update(now);
                }
                hub.sendPictures(this::picture);
                for (Event event : events.take()) {
                    hub.send(frame("event", event));
                }
            } catch (RuntimeException e) {
                // A single failed picture must not end the stream for good.
                LOG.error("the watch could not read the broker's state", e);
            }
            LockSupport.parkNanos(this, nextNs - System.nanoTime());
        }
    }

    /** Runs once a second. */
    private void update(long nowNs) {
        List<SessionInfo> over = new ArrayList<>();
        SessionView ended;
        while ((ended = feed.pollOver()) != null) {
            over.add(SessionInfo.of(ended, ""));
        }
        Picture now = pictures.take();
        sample(nowNs, over, now);
        Picture before = last;
        last = now;
        if (before != null) {
            notices.compare(before, now); // other brokers of the pool report their own
        }
        show();
        hub.tick();
    }

    /** Shows the clients what has changed in the pool. */
    private void show() {
        lastFrame = null;
        Picture before = shown;
        shown = hub.size() > 0 ? pictures.takeAll() : null;
        if (before != null && shown != null) {
            Change change = Change.between(before, shown);
            if (!change.isNothing()) {
                hub.send(frame("change", change));
            }
        }
    }

    private void sample(long nowNs, List<SessionInfo> over, Picture now) {
        Map<String, Double> utilizations = new HashMap<>();
        for (GpuInfo gpu : now.gpus()) {
            utilizations.put(gpu.uuid(), gpu.utilizationPercent() == null ? Double.NaN : gpu.utilizationPercent());
        }
        double seconds = Math.max(nowNs - sampledNs, 1) / (double) SECOND_NS;
        Map<History.Key, Sample> samples = sampler.sample(over, now.sessions(), utilizations, seconds);
        sampledNs = nowNs;
        Set<String> vgpus = new HashSet<>();
        now.vgpus().forEach(vgpu -> vgpus.add(vgpu.name()));
        now.sessions().forEach(session -> vgpus.add(session.vgpu()));
        history.keep(utilizations.keySet(), vgpus);
        history.add(tick(nowNs), samples);
    }

    private Frame picture() {
        if (lastFrame == null) {
            shown = shown == null ? pictures.takeAll() : shown;
            lastFrame = frame("picture", shown);
        }
        return lastFrame;
    }

    private Frame frame(String name, Object value) {
        try {
            return new Frame(name, json.writeValueAsString(value));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
