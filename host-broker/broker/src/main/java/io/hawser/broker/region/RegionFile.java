package io.hawser.broker.region;

import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.FileLocks;
import io.hawser.shm.os.SharedMemory;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Set;
import org.jboss.logging.Logger;

/**
 * The memory of a region: its descriptor, which workers are given copies of, and the broker's mapping of it. Event loop
 * only.
 */
final class RegionFile implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(RegionFile.class);
    /** File systems whose files are memory; what is anywhere else is somebody's file, not to be written over. */
    private static final Set<String> MEMORY_FILE_SYSTEMS = Set.of("tmpfs", "ramfs", "hugetlbfs", "sysfs");
    /** Behind the bytes that stand for slots: locked by the broker that serves the region. */
    private static final long BROKER_BYTE = RegionLayout.MAX_SLOTS;

    private final Path path;
    private final boolean made;
    private final int descriptor;
    private final int lockDescriptor;
    private final RegionGeometry geometry;
    private final SharedMemory mapping;

    private RegionFile(Path path, boolean made, int descriptor, int lockDescriptor, RegionGeometry geometry,
        SharedMemory mapping) {
        this.path = path;
        this.made = made;
        this.descriptor = descriptor;
        this.lockDescriptor = lockDescriptor;
        this.geometry = geometry;
        this.mapping = mapping;
    }

    /**
     * Opens the region's file, or makes it; or makes memory of the broker's own.
     *
     * @throws RegionException when it cannot be had; nothing of it is left.
     */
    static RegionFile open(RegionSettings settings) throws RegionException {
        if (settings.hasDoorbell()) {
            return anonymous(settings);
        }
        Path path = place(settings);
        boolean made = !Files.exists(path, LinkOption.NOFOLLOW_LINKS);
        if (made && settings.hasTag()) {
            throw conflict(settings, new IOException("the device has been taken out"));
        }
        int descriptor = -1;
        try {
            descriptor = made ? make(settings) : existing(path);
            // A second open file: its lock ends with the broker, not with the last worker that has the first.
            int lockDescriptor = lock(path);
            try {
                return map(settings, path, made, descriptor, lockDescriptor);
            } catch (IOException | RegionException | RuntimeException e) {
                Descriptors.close(lockDescriptor);
                throw e;
            }
        } catch (IOException | RegionException | RuntimeException e) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
                remove(path, made);
            }
            throw e instanceof RegionException known ? known : conflict(settings, e);
        }
    }

    private static Path place(RegionSettings settings) throws RegionException {
        if (!settings.hasTag()) {
            return settings.path();
        }
        try {
            return IvshmemDevices.find(IvshmemDevices.PCI, settings.tag());
        } catch (IOException e) {
            throw conflict(settings, e);
        }
    }

    private static RegionFile anonymous(RegionSettings settings) throws RegionException {
        int descriptor = -1;
        try {
            descriptor = Descriptors.memory("hawser-" + settings.name(), settings.sizeBytes());
            return map(settings, null, false, descriptor, -1);
        } catch (IOException e) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
            throw conflict(settings, e);
        }
    }

    private static RegionFile map(RegionSettings settings, Path path, boolean made, int descriptor, int lockDescriptor)
        throws RegionException, IOException {
        long bytes = settings.sizeBytes() == 0 ? Descriptors.fileBytes(descriptor) : settings.sizeBytes();
        if (settings.hasTag() && bytes != Descriptors.fileBytes(descriptor)) {
            throw new IOException("the device must be as long as the region: sizeBytes=" + bytes + " deviceBytes="
                + Descriptors.fileBytes(descriptor));
        }
        RegionGeometry geometry = settings.geometry(bytes);
        return new RegionFile(path, made, descriptor, lockDescriptor, geometry,
            SharedMemory.map(descriptor, bytes, 0));
    }

    private static int make(RegionSettings settings) throws IOException, RegionException {
        if (settings.sizeBytes() == 0) {
            throw new RegionException(RegionException.Kind.INVALID, "a region whose file does not exist must have a "
                + "size: region=" + settings.name() + " path=" + settings.path());
        }
        requireMemory(settings.path().toAbsolutePath().getParent());
        int descriptor = Descriptors.create(settings.path());
        try {
            Descriptors.resize(descriptor, settings.sizeBytes());
            return descriptor;
        } catch (IOException e) {
            Descriptors.close(descriptor);
            remove(settings.path(), true);
            throw e;
        }
    }

    private static int existing(Path path) throws IOException {
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException("it must be a file, not a link or folder");
        }
        requireMemory(path);
        return Descriptors.open(path);
    }

    private static void requireMemory(Path path) throws IOException {
        String type = Files.getFileStore(path).type();
        if (!MEMORY_FILE_SYSTEMS.contains(type)) {
            throw new IOException("it must be memory, as files in /dev/shm are: fileSystem=" + type);
        }
    }

    private static int lock(Path path) throws IOException {
        int descriptor = Descriptors.open(path);
        try {
            if (FileLocks.tryLock(descriptor, BROKER_BYTE)) {
                return descriptor;
            }
        } catch (IOException e) {
            Descriptors.close(descriptor);
            throw e;
        }
        Descriptors.close(descriptor);
        throw new IOException("a broker serves it already");
    }

    private static RegionException conflict(RegionSettings settings, Exception cause) {
        return new RegionException(RegionException.Kind.CONFLICT, "the region cannot be opened: region="
            + settings.name() + " path=" + settings.place() + ": " + cause.getMessage());
    }

    private static void remove(Path path, boolean made) {
        if (made) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                LOG.warnf("the file of a region could not be removed: %s", e.getMessage());
            }
        }
    }

    /** Its descriptor; owned by this. */
    int descriptor() {
        return descriptor;
    }

    /** How it is divided. */
    RegionGeometry geometry() {
        return geometry;
    }

    /** The broker's mapping. An access behind the end of a file that was cut throws InternalError. */
    MemorySegment memory() {
        return mapping.memory();
    }

    /** Whether somebody else holds the lock of a slot. */
    boolean isSlotLocked(int slot) throws IOException {
        return FileLocks.isLocked(descriptor, slot);
    }

    /** Unmaps it, and removes the file if this made it. */
    @Override
    public void close() {
        mapping.close();
        remove(path, made);
        if (lockDescriptor >= 0) {
            Descriptors.close(lockDescriptor);
        }
        Descriptors.close(descriptor);
    }
}
