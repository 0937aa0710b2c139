package io.hawser.check;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The files of a run: logs and outputs in a temporary folder, a region in /dev/shm. */
final class Workplace implements AutoCloseable {
    /** Begins the names of regions of runs, which may go on beside each other; the process's id follows. */
    static final String REGION_PREFIX = "hawser-check-";

    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    private static final long MIB = 1 << 20;
    private static final long MOST_REGION_MIB = 1024;
    private static final long LEAST_REGION_MIB = 32;
    /** Size of the region of each further vGPU, in MiB. */
    static final long VGPU_REGION_MIB = 32;

    private final Path folder;
    private final Path region;
    private final long regionMib;
    private final Map<String, Path> vgpuRegions = new ConcurrentHashMap<>();
    private volatile boolean keep;

    private Workplace(Path folder, Path region, long regionMib, boolean keep) {
        this.folder = folder;
        this.region = region;
        this.regionMib = regionMib;
        this.keep = keep;
    }

    /**
     * Makes the folder, and a region if wanted.
     *
     * @throws CheckException if there is no room for it.
     */
    static Workplace make(boolean withRegion, boolean keep) {
        try {
            Path folder = Files.createTempDirectory("hawser-check-");
            if (!withRegion) {
                return new Workplace(folder, null, 0, keep);
            }
            // A full /dev/shm, which is small in containers, is noticed only on access, by a fatal signal. So the
            // region takes at most half of the free space.
            long mib = Math.min(MOST_REGION_MIB, Files.getFileStore(SHARED_MEMORY).getUsableSpace() / MIB / 2);
            if (mib < LEAST_REGION_MIB) {
                Files.delete(folder);
                throw new CheckException("/dev/shm has room for a region of " + mib + " MiB only, at least "
                    + LEAST_REGION_MIB + " are needed: enlarge it, or use --carriers tcp");
            }
            return new Workplace(folder, SHARED_MEMORY.resolve(REGION_PREFIX + ProcessHandle.current().pid()),
                Long.highestOneBit(mib), keep);
        } catch (IOException e) {
            throw new CheckException("no temporary folder or shared memory: " + e, e);
        }
    }

    Path folder() {
        return folder;
    }

    /** The region's file; null if there is none. */
    Path region() {
        return region;
    }

    long regionMib() {
        return regionMib;
    }

    /**
     * Names a region for each of these vGPUs; the broker makes the files.
     *
     * @throws CheckException if there is no room for them.
     */
    void addRegions(Collection<String> vgpus) {
        try {
            long mib = Files.getFileStore(SHARED_MEMORY).getUsableSpace() / MIB;
            if (mib < vgpus.size() * VGPU_REGION_MIB) {
                throw new CheckException("/dev/shm must have room for " + vgpus.size() + " regions of "
                    + VGPU_REGION_MIB + " MiB: freeMiB=" + mib);
            }
        } catch (IOException e) {
            throw new CheckException("no shared memory: " + e, e);
        }
        vgpus.forEach(vgpu -> vgpuRegions.put(vgpu,
            SHARED_MEMORY.resolve(REGION_PREFIX + ProcessHandle.current().pid() + "-" + vgpu)));
    }

    /** The files of these regions, by vGPU. */
    Map<String, Path> vgpuRegions() {
        return vgpuRegions;
    }

    /** Makes logs and outputs stay. */
    void keep() {
        keep = true;
    }

    boolean isKept() {
        return keep;
    }

    /** Removes the regions, and the folder unless it stays. */
    @Override
    public synchronized void close() {
        try {
            if (region != null) {
                Files.deleteIfExists(region);
            }
            for (Path file : vgpuRegions.values()) {
                Files.deleteIfExists(file);
            }
            if (!keep && Files.exists(folder)) {
                Files.walkFileTree(folder, new Remover());
            }
        } catch (IOException e) {
            System.err.println("hawser-check: not everything could be removed: " + e);
        }
    }

    private static final class Remover extends SimpleFileVisitor<Path> {
        @Override
        public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
        }

        @Override
        public FileVisitResult visitFileFailed(Path file, IOException e) throws IOException {
            if (Files.exists(file)) {
                throw e;
            }
            return FileVisitResult.CONTINUE; // its process has removed the file in the meantime
        }

        @Override
        public FileVisitResult postVisitDirectory(Path folder, IOException e) throws IOException {
            if (e != null) {
                throw e;
            }
            Files.deleteIfExists(folder);
            return FileVisitResult.CONTINUE;
        }
    }
}
