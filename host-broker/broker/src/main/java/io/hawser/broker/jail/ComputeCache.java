package io.hawser.broker.jail;

import io.hawser.broker.config.ComputeCacheConfig;
import io.hawser.shm.os.Folder;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jboss.logging.Logger;

/**
 * The compute cache of NVIDIA's driver: the code that it has compiled from PTX, in a folder for each vGPU. Without it
 * every process compiles the same code again; cuFFT alone needs about 70 ms for a plan. Workers reach the cache of
 * their vGPU through {@link CacheFiles} only. Thread-safe.
 */
public final class ComputeCache {
    private static final Logger LOG = Logger.getLogger(ComputeCache.class);

    private final Path root;
    private final long maxBytes;
    private final Map<String, CacheFolder> folders = new HashMap<>(); // by the vGPU's name

    private ComputeCache(Path root, long maxBytes) {
        this.root = root;
        this.maxBytes = maxBytes;
    }

    /**
     * Opens the cache and makes its folder.
     *
     * @param stateDir the broker's own folder, which only its user may write.
     * @return null where the settings allow no cache.
     * @throws IllegalArgumentException when a setting is wrong, or another user can change the folder.
     * @throws IOException if the folder cannot be made.
     */
    public static ComputeCache open(ComputeCacheConfig config, Path stateDir) throws IOException {
        long maxBytes = config.maxSize().asLongValue();
        if (maxBytes < 0) {
            throw new IllegalArgumentException("hawser.compute-cache.max-size must be 0 or more: " + maxBytes);
        }
        if (maxBytes == 0) {
            return null;
        }
        Path root = config.dir().orElseGet(() -> stateDir.resolve("compute-cache")).toAbsolutePath().normalize();
        if (!Files.isDirectory(root)) {
            Files.createDirectories(root.getParent());
            Files.createDirectory(root, PosixFilePermissions.asFileAttribute(
                PosixFilePermissions.fromString("rwx------")));
        }
        try (Folder folder = Folder.open(root)) {
            if (!folder.status().isOwn() || folder.status().isWritableByOthers()) {
                throw new IllegalArgumentException("the folder of the compute cache must be the broker's user's, and "
                    + "nobody else may write to it: hawser.compute-cache.dir=" + root);
            }
        }
        return new ComputeCache(root, maxBytes);
    }

    /** Variables that lead NVIDIA's driver in a worker to the cache, by name. */
    Map<String, String> environment() {
        return Map.of("CUDA_CACHE_PATH", root.toString(), "CUDA_CACHE_MAXSIZE", Long.toString(maxBytes));
    }

    /** The cache as a worker sees it that serves no vGPU yet. */
    CacheFiles files() {
        return new CacheFiles(root, maxBytes);
    }

    /** The folder of a vGPU, which is made when the first file comes. */
    synchronized CacheFolder folder(String vgpu) {
        return folders.computeIfAbsent(vgpu, name -> new CacheFolder(root.resolve("vgpu-" + name), maxBytes));
    }

    /** Removes the cache of a vGPU that is gone. Workers that still use it keep nothing there any more. */
    public void forget(String vgpu) {
        CacheFolder folder = folder(vgpu);
        folder.close();
        synchronized (this) {
            folders.remove(vgpu, folder);
        }
    }

    /** Removes the caches of vGPUs that do not exist any more; for a broker that starts. */
    public void retain(Set<String> vgpus) {
        try (DirectoryStream<Path> found = Files.newDirectoryStream(root, "vgpu-*")) {
            for (Path folder : found) {
                String name = folder.getFileName().toString().substring("vgpu-".length());
                if (!vgpus.contains(name)) {
                    forget(name);
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            LOG.warnf("the compute cache cannot be read: %s", e.getMessage());
        }
    }
}
