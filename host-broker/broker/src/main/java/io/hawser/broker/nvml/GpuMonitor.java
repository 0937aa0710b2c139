package io.hawser.broker.nvml;

import io.hawser.broker.model.Device;
import io.hawser.broker.model.SessionView;
import io.hawser.broker.nvml.GpuReading.Health;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jboss.logging.Logger;

/**
 * Reads the GPUs each second, on a thread of its own since a driver may take its time or hang, and publishes pictures.
 * {@link #start} and {@link #stop} from one thread; all else from any, without waiting.
 */
public final class GpuMonitor {
    private static final Logger LOG = Logger.getLogger(GpuMonitor.class);
    private static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(1);
    /** Older figures are not shown; a driver that answers at all answers sooner. */
    private static final Duration STALE = Duration.ofSeconds(10);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(1);

    /** What it looks at; answers at once, from any thread. */
    public interface Watched {
        /** The GPUs as workers tell them. */
        List<Device> devices();

        /** The sessions. */
        List<SessionView> sessions();

        /** Processes of the workers that have a context and no session. */
        List<Integer> idleWorkerPids();
    }

    /** Readings and when they were made. */
    private record Picture(long takenNs, Map<String, GpuReading> readings, Map<String, Long> contextBytes) { }

    private final Watched watched;
    private final long staleNs;
    private volatile Picture picture = new Picture(System.nanoTime(), Map.of(), Map.of());
    private volatile Thread thread;
    private volatile boolean stopping;

    /** Makes one that reads nothing yet. */
    public GpuMonitor(Watched watched) {
        this(watched, STALE);
    }

    /** The same, which shows no figures that are older than this. */
    GpuMonitor(Watched watched, Duration stale) {
        this.watched = watched;
        staleNs = stale.toNanos();
    }

    /**
     * Reads from now on.
     *
     * @param backend of the workers; of others than {@code nvidia} it shows what their processes use.
     */
    public void start(String backend) {
        start(backend.equals("nvidia") ? () -> new NvmlSource(Nvml.LIBRARY, this::known)
            : () -> new SoftwareSource(watched::devices, watched::sessions));
    }

    private Set<String> known() {
        return watched.devices().stream().map(Device::uuid).collect(Collectors.toSet());
    }

    /** Reads from this source from now on, which is made, used and closed by the thread that reads. */
    void start(Supplier<GpuSource> sources) {
        if (thread == null && !stopping) {
            thread = Thread.ofPlatform().daemon().name("hawser-gpus").start(() -> run(sources));
        }
    }

    private void run(Supplier<GpuSource> sources) {
        try (GpuSource source = sources.get()) {
            long nextNs = System.nanoTime();
            while (!stopping) {
                try {
                    Map<String, GpuReading> readings = source.read();
                    picture = new Picture(System.nanoTime(), readings, contexts(readings));
                } catch (RuntimeException e) {
                    LOG.error("the GPUs could not be read", e);
                }
                nextNs = Math.max(nextNs + PERIOD_NS, System.nanoTime());
                for (long restNs; !stopping && (restNs = nextNs - System.nanoTime()) > 0;) {
                    LockSupport.parkNanos(restNs);
                }
            }
        }
    }

    /** What a worker without a session holds: the dearest one on each GPU, or what was known before. */
    private Map<String, Long> contexts(Map<String, GpuReading> readings) {
        Map<String, Long> bytes = new HashMap<>(picture.contextBytes);
        List<Integer> idle = watched.idleWorkerPids();
        readings.forEach((uuid, reading) -> idle.stream().map(pid -> reading.processBytes().get((long) pid))
            .filter(used -> used != null && used > 0).mapToLong(Long::longValue).max()
            .ifPresent(most -> bytes.put(uuid, most)));
        return Map.copyOf(bytes);
    }

    /**
     * The last reading of a GPU.
     *
     * @return with nothing known but its health when there is none, or none that is fresh.
     */
    public GpuReading reading(String uuid) {
        Picture now = picture;
        long ageNs = System.nanoTime() - now.takenNs;
        if (thread != null && ageNs > staleNs) {
            return GpuReading.unknown(uuid, Health.FAILING, "the driver has not answered for "
                + TimeUnit.NANOSECONDS.toSeconds(ageNs) + " s");
        }
        GpuReading reading = now.readings.get(uuid);
        return reading == null ? GpuReading.unknown(uuid, Health.OK, "") : reading;
    }

    /**
     * Device memory that a process holds on a GPU as the driver sees it, its context included, in bytes: what cannot be
     * lied about. At most about a second old.
     *
     * @return empty where the driver does not tell, and for the software GPU.
     */
    public OptionalLong processBytes(String uuid, long pid) {
        Long bytes = reading(uuid).processBytes().get(pid);
        return bytes == null ? OptionalLong.empty() : OptionalLong.of(bytes);
    }

    /** Device memory that one worker's context takes before it does anything; 0 while it is not known. */
    public long contextBytes(String uuid) {
        return picture.contextBytes.getOrDefault(uuid, 0L);
    }

    /** Reads no more. A thread that the driver holds is left behind, and ends with the process. */
    public void stop() {
        stopping = true;
        Thread running = thread;
        if (running == null) {
            return;
        }
        LockSupport.unpark(running);
        try {
            if (!running.join(STOP_LIMIT)) {
                LOG.warn("the driver has not answered; the thread that reads the GPUs is left behind");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
