package io.hawser.broker.config;

import io.smallrye.config.WithDefault;
import java.time.Duration;
import java.util.Optional;

/** Growth of the pools of ready workers with the demand, and their starts. */
public interface PoolConfig {
    /**
     * Workers that a pool keeps ready at most. A pool starts with {@code hawser.worker.pool-size} workers. Each session
     * that finds neither a ready worker nor one that starts ahead adds one, while the memory that vGPUs have not
     * reserved has room for its context. A pool does not grow when this number is not above
     * {@code hawser.worker.pool-size}, or when that is 0. Range: 0 or more.
     */
    @WithDefault("8")
    int maxSize();

    /**
     * Time after which a pool gives up ready workers that demand has added and no session has needed meanwhile. Range:
     * above 0.
     */
    @WithDefault("60s")
    Duration idleTime();

    /**
     * Workers of all pools that start at a time; each pool may always start one. More starts at a time delay each other
     * and running sessions. With 0 it is three eighths of the machine's processors, at least 2. Range: 0 or
     * more.
     */
    @WithDefault("0")
    int maxStarting();

    /**
     * JVM flags of a worker for which a guest already waits, in addition to {@code hawser.worker.flags}, separated by
     * spaces. The default makes the JVM compile less during the start. They apply to the default
     * {@code hawser.worker.command} only. An empty value is no flag.
     */
    @WithDefault("-XX:CompileThresholdScaling=3")
    Optional<String> awaitedFlags();
}
