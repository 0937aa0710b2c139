package io.hawser.broker;

import io.hawser.broker.admin.TokenService;
import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.pool.FakeWorker;
import io.hawser.broker.vgpu.VgpuDraft;
import io.smallrye.config.PropertiesConfigSource;
import io.smallrye.config.SmallRyeConfigBuilder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/** A broker with fake workers, in the test's own process. */
public final class TestBroker implements BrokerListener, AutoCloseable {
    public static final long DESCRIPTION_HASH = 0x1234_5678_9abc_def0L;
    /** For tests of other things than this timeout: on a slow machine a guest's first handshake can take long. */
    public static final String HANDSHAKE_TIMEOUT = "300s";
    /** A listener for brokers that must not start. */
    public static final BrokerListener NO_LISTENER = new BrokerListener() {
        @Override
        public void refused(Carrier carrier, Refusal refusal) {
            throw new AssertionError("refused: " + carrier + " " + refusal);
        }

        @Override
        public void sessionStarted(Carrier carrier, Duration time) {
            throw new AssertionError("a session started over " + carrier);
        }

        @Override
        public void workerStarted(Duration time) {
            throw new AssertionError("a worker became ready after " + time);
        }
    };
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(180); // ends a test that hangs

    private final Map<Refusal, Integer> refused = new EnumMap<>(Refusal.class);
    private final Broker broker;
    private volatile Runnable whenRefused = () -> {};
    private volatile Runnable whenSessionStarts = () -> {};

    private TestBroker(BrokerConfig config, Map<String, String> environment) {
        broker = Broker.start(config, environment, this, DESCRIPTION_HASH);
    }

    /** Starts a broker. */
    public static TestBroker start(Path stateDir, String mode, Map<String, String> settings) {
        return start(stateDir, mode, settings, Map.of());
    }

    /** Starts a broker and adds variables to the environment that it sees. */
    public static TestBroker start(Path stateDir, String mode, Map<String, String> settings,
        Map<String, String> environment) {
        Map<String, String> all = new HashMap<>(System.getenv());
        all.putAll(environment);
        return new TestBroker(config(stateDir, mode, settings), all);
    }

    /** The command line of a fake worker. */
    public static String workerCommand(String mode) {
        return "\"" + Path.of(System.getProperty("java.home"), "bin", "java") + "\" -XX:TieredStopAtLevel=1 "
            + "-XX:+UseSerialGC -Xmx32m -Xshare:auto --enable-native-access=ALL-UNNAMED -cp \""
            + System.getProperty("java.class.path") + "\" " + FakeWorker.class.getName() + " " + mode;
    }

    /** A broker's settings with a free port and fake workers. */
    public static BrokerConfig config(Path stateDir, String mode, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("hawser.state-dir", stateDir.toString(), "hawser.listen.port",
            "0", "hawser.listen.handshake-timeout", HANDSHAKE_TIMEOUT, "hawser.worker.command", workerCommand(mode),
            "hawser.worker.pool-size", "1", "hawser.pool.max-size", "1"));
        all.putAll(settings);
        return new SmallRyeConfigBuilder().addDefaultInterceptors().addDiscoveredConverters()
            .withSources(new PropertiesConfigSource(Map.of("user.home", stateDir.toString()), "home", 1))
            .withSources(new PropertiesConfigSource(all, "test", 500)).withMapping(BrokerConfig.class).build()
            .getConfigMapping(BrokerConfig.class);
    }

    /** Waits until the condition holds, and fails the test when it does not within the limit. */
    public static void await(String what, BooleanSupplier condition) {
        long deadlineNs = System.nanoTime() + LIMIT_NS;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadlineNs) {
                throw new AssertionError("the wait has expired: " + what + RealProcess.threadDumps());
            }
            try {
                TimeUnit.MILLISECONDS.sleep(10);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    public Broker.Parts broker() {
        return broker.parts();
    }

    /** Whether the event loop answers within a second. Not on the event loop. */
    public boolean answers() {
        return broker.loop().submit(() -> {}).awaitUninterruptibly(1, TimeUnit.SECONDS);
    }

    /** Makes a token of a vGPU. */
    public TokenService.Made token(String vgpu) {
        return done(broker().tokenService().create(vgpu, null, null));
    }

    /** Makes a vGPU. */
    public VgpuView vgpu(String name, long memoryBytes, String gpus) {
        return done(broker().vgpuService().create(name, draft(memoryBytes, gpus)));
    }

    /** A draft that names only memory and GPUs. */
    public static VgpuDraft draft(Long memoryBytes, String gpus) {
        return new VgpuDraft(null, null, memoryBytes, null, null, gpus, null, null);
    }

    /** Waits for a future's result within the limit. A failure of the future fails the test. */
    public static <T> T done(CompletableFuture<T> future) {
        try {
            return future.get(LIMIT_NS, TimeUnit.NANOSECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError(e.getCause().getMessage(), e.getCause());
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    /** Waits until a future fails, and returns the reason. */
    public static VgpuException refused(CompletableFuture<?> future) {
        try {
            Object result = future.get(LIMIT_NS, TimeUnit.NANOSECONDS);
            throw new AssertionError("the change must be refused: result=" + result);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof VgpuException known) {
                return known;
            }
            throw new AssertionError(e.getCause());
        } catch (InterruptedException | TimeoutException e) {
            throw new AssertionError(e);
        }
    }

    /** Sets the action that runs on the event loop at each refusal and may block the loop. Null removes the action. */
    public void whenRefused(Runnable action) {
        whenRefused = action == null ? () -> {} : action;
    }

    /** Sets the action that runs on the event loop as soon as a worker has got its guest. */
    public void whenSessionStarts(Runnable action) {
        whenSessionStarts = action;
    }

    /** Runs work on the event loop. */
    public void onLoop(Runnable work) {
        broker.loop().submit(work).syncUninterruptibly();
    }

    /** Number of guests that the broker has refused so far for a reason. */
    public synchronized int refusals(Refusal refusal) {
        return refused.getOrDefault(refusal, 0);
    }

    @Override
    public void refused(Carrier carrier, Refusal refusal) {
        synchronized (this) {
            refused.merge(refusal, 1, Integer::sum);
        }
        whenRefused.run();
    }

    @Override
    public void sessionStarted(Carrier carrier, Duration time) {
        whenSessionStarts.run();
    }

    @Override
    public void workerStarted(Duration time) {
        // The tests read the pool's state instead.
    }

    @Override
    public void close() {
        broker.stop("the test is over");
    }
}
