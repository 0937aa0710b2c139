package io.hawser.broker.config;

import io.quarkus.runtime.configuration.MemorySize;
import io.smallrye.config.WithDefault;
import java.nio.file.Path;
import java.util.Optional;

/** Code that NVIDIA's driver has compiled from PTX in a vGPU's workers, for later sessions of that vGPU. */
public interface ComputeCacheConfig {
    /**
     * Size of the cache of one vGPU. The code that was used least recently goes first. With 0 the workers have no
     * cache, and each session compiles its code again. Range: 0 or more.
     */
    @WithDefault("256M")
    MemorySize maxSize();

    /**
     * Folder of the caches, which only root and the broker's user may be able to write. The cache leaves 1 GiB of its
     * file system free. Default: {@code compute-cache} in {@code hawser.state-dir}.
     */
    Optional<Path> dir();
}
