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
 * Reads the GPUs each second and publishes snapshots. It uses its own thread, since a driver may be slow or hang. Call
 * {@link #start} and {@link #stop} from one thread; all other methods from any thread, without waiting.
 */
public final class GpuMonitor {
    private static final Logger LOG = Logger.getLogger(GpuMonitor.class);
    private static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(1);
    /** Older figures are hidden; a working driver answers sooner. */
    private static final Duration STALE = Duration.ofSeconds(10);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(1);

    /** The monitor's view of the broker; answers at once, from any thread. */
    public interface Watched {
        /** The GPUs that workers have reported. */
        List<Device> devices();

        /** The sessions. */
        List<SessionView> sessions();

        /** Process ids of the workers that have a context and no session. */
        List<Integer> idleWorkerPids();
    }

    /** Readings and their time. */
    private record Picture(long takenNs, Map<String, GpuReading> readings, Map<String, Long> contextBytes,
        String driverVersion) {}

    private final Watched watched;
    private final long staleNs;
    private volatile Picture picture = new Picture(System.nanoTime(), Map.of(), Map.of(), "");
    private volatile Thread thread;
    private volatile boolean stopping;

    /** Creates a monitor that does not read yet. */
    public GpuMonitor(Watched watched) {
        this(watched, STALE);
    }

    /** For tests: with another age limit for figures. */
    GpuMonitor(Watched watched, Duration stale) {
        this.watched = watched;
        staleNs = stale.toNanos();
    }

    /**
     * Starts to read.
     *
     * @param backend of the workers; for other backends than {@code nvidia} the figures come from the workers'
     * processes.
     */
    public void start(String backend) {
        start(backend.equals("nvidia") ? () -> new NvmlSource(Nvml.LIBRARY, this::known)
            : () -> new SoftwareSource(watched::devices, watched::sessions));
    }

    private Set<String> known() {
        return watched.devices().stream().map(Device::uuid).collect(Collectors.toSet());
    }

    /** Starts to read from this source. The reading thread creates, uses and closes it. */
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
                    picture = new Picture(System.nanoTime(), readings, contexts(readings), source.driverVersion());
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

    /** The largest memory of an idle worker on each GPU; the previous value where no worker is idle. */
    private Map<String, Long> contexts(Map<String, GpuReading> readings) {
        Map<String, Long> bytes = new HashMap<>(picture.contextBytes);
        List<Integer> idle = watched.idleWorkerPids();
        readings.forEach((uuid, reading) -> idle.stream().map(pid -> reading.processBytes().get((long) pid))
            .filter(used -> used != null && used > 0).mapToLong(Long::longValue).max()
            .ifPresent(most -> bytes.put(uuid, most)));
        return Map.copyOf(bytes);
    }

    /**
     * The latest reading of a GPU.
     *
     * @return a reading with only the health when there is no recent one.
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
     * Device memory of a process on a GPU by the driver's figures, including its context, in bytes. A worker cannot
     * falsify it. At most about a second old.
     *
     * @return empty where the driver has no figure, and for the software GPU.
     */
    public OptionalLong processBytes(String uuid, long pid) {
        Long bytes = reading(uuid).processBytes().get(pid);
        return bytes == null ? OptionalLong.empty() : OptionalLong.of(bytes);
    }

    /** The version of the driver; empty without one, and before the first reading. */
    public String driverVersion() {
        return picture.driverVersion;
    }

    /** Device memory of a new worker's context; 0 while it is unknown. */
    public long contextBytes(String uuid) {
        return picture.contextBytes.getOrDefault(uuid, 0L);
    }

    /** Stops reading. A thread that hangs in the driver continues until the process ends. */
    public void stop() {
        stopping = true;
        Thread running = thread;
        if (running == null) {
            return;
        }
        LockSupport.unpark(running);
        try {
            if (!running.join(STOP_LIMIT)) {
                LOG.warn("the driver hangs; the thread that reads the GPUs continues until the broker ends");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
