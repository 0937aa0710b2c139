package io.hawser.broker.region;

import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.FileLocks;
import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.Folder;
import io.hawser.shm.os.PinnedFile;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.Set;
import org.jboss.logging.Logger;

/**
 * The memory of a region: its descriptor, of which workers get copies, and the broker's mapping of it. Event loop only.
 */
final class RegionFile implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(RegionFile.class);
    /**
     * Linux linux/magic.h: tmpfs, ramfs, hugetlbfs. Their files are memory. A file on another file system may hold a
     * user's data, and the broker must not overwrite it.
     */
    private static final Set<Long> MEMORY_FILE_SYSTEMS = Set.of(0x01021994L, 0x858458f6L, 0x958458f6L);
    /** Linux linux/magic.h. Of the files in sysfs, only the resources of devices are memory. */
    private static final long SYSFS = 0x62656572L;
    /** Lock byte after the slots' bytes; the broker that serves the region locks it. */
    private static final long BROKER_BYTE = RegionLayout.MAX_SLOTS;

    private final Made made;
    private final int descriptor;
    private final int lockDescriptor;
    private final RegionGeometry geometry;
    private final SharedMemory mapping;

    private RegionFile(Made made, int descriptor, int lockDescriptor, RegionGeometry geometry, SharedMemory mapping) {
        this.made = made;
        this.descriptor = descriptor;
        this.lockDescriptor = lockDescriptor;
        this.geometry = geometry;
        this.mapping = mapping;
    }

    /**
     * A file that this broker created, and its folder.
     *
     * @param folder owned by this record.
     */
    private record Made(Folder folder, String name, FileStatus status) implements AutoCloseable {
        /** Removes the file if the name still refers to it. */
        @Override
        public void close() {
            try (folder) {
                Optional<PinnedFile> found = folder.find(name);
                if (found.isPresent()) {
                    try (PinnedFile now = found.get()) {
                        if (now.status().isSameFile(status)) {
                            folder.remove(name);
                        }
                    }
                }
            } catch (IOException e) {
                LOG.warnf("cannot remove the file of a region: %s", e.getMessage());
            }
        }
    }

    /**
     * Opens or creates the region's file, or creates anonymous memory for a doorbell's region.
     *
     * @param folders below which REST may place regions.
     * @throws RegionException when that fails; it has released everything.
     */
    static RegionFile open(RegionSettings settings, RegionFolders folders) throws RegionException {
        if (settings.hasDoorbell()) {
            return anonymous(settings);
        }
        try {
            Place place = settings.hasTag()
                ? Place.ofAdministrator(IvshmemDevices.find(IvshmemDevices.PCI, settings.tag()))
                : folders.place(settings);
            Folder folder = place.open();
            Optional<PinnedFile> found;
            try {
                found = folder.find(place.name());
            } catch (IOException e) {
                folder.close();
                throw e;
            }
            return found.isPresent() ? existing(settings, folder, place.name(), found.get())
                : make(settings, folder, place.name());
        } catch (IOException e) {
            throw conflict(settings, e);
        }
    }

    private static RegionFile anonymous(RegionSettings settings) throws RegionException {
        int descriptor = -1;
        try {
            descriptor = Descriptors.memory("hawser-" + settings.name(), settings.sizeBytes());
            return map(settings, null, descriptor, -1);
        } catch (IOException e) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
            throw conflict(settings, e);
        }
    }

    private static RegionFile map(RegionSettings settings, Made made, int descriptor, int lockDescriptor)
        throws RegionException, IOException {
        long bytes = settings.sizeBytes() == 0 ? Descriptors.fileBytes(descriptor) : settings.sizeBytes();
        if (settings.hasTag() && bytes != Descriptors.fileBytes(descriptor)) {
            throw new IOException("the device must be as long as the region: sizeBytes=" + bytes + " deviceBytes="
                + Descriptors.fileBytes(descriptor));
        }
        RegionGeometry geometry = settings.geometry(bytes);
        return new RegionFile(made, descriptor, lockDescriptor, geometry, SharedMemory.map(descriptor, bytes, 0));
    }

    /** Creates the file; takes ownership of the folder. */
    private static RegionFile make(RegionSettings settings, Folder folder, String name)
        throws IOException, RegionException {
        Made made = null;
        int descriptor = -1;
        try {
            if (settings.hasTag()) {
                throw new IOException("the device has been removed");
            }
            if (settings.sizeBytes() == 0) {
                throw new RegionException(RegionException.Kind.INVALID, "a region whose file does not exist must have "
                    + "a size: region=" + settings.name() + " path=" + settings.path());
            }
            if (!MEMORY_FILE_SYSTEMS.contains(folder.fileSystem())) {
                throw noMemory(folder.fileSystem());
            }
            descriptor = folder.create(name);
            made = new Made(folder, name, FileStatus.of(descriptor));
            Descriptors.resize(descriptor, settings.sizeBytes());
            return locked(settings, made, descriptor, Descriptors.reopen(descriptor));
        } catch (IOException | RegionException | RuntimeException e) {
            if (descriptor >= 0) {
                Descriptors.close(descriptor);
            }
            if (made == null) {
                folder.close();
            } else {
                made.close();
            }
            throw e;
        }
    }

    /** Opens an existing file if no other broker serves it; closes folder and pin. */
    private static RegionFile existing(RegionSettings settings, Folder folder, String name, PinnedFile found)
        throws IOException, RegionException {
        try (folder; found) {
            check(settings, folder, name, found);
            int descriptor = found.open();
            try {
                return locked(settings, null, descriptor, found.open());
            } catch (IOException | RegionException | RuntimeException e) {
                Descriptors.close(descriptor);
                throw e;
            }
        }
    }

    /** Checks the pinned file, so that the name cannot refer to another file afterwards. */
    private static void check(RegionSettings settings, Folder folder, String name, PinnedFile found)
        throws IOException {
        FileStatus status = found.status();
        if (!status.isRegular()) {
            throw new IOException("it must be a file, not a link, folder, device, FIFO or socket");
        }
        long fileSystem = found.fileSystem();
        if (fileSystem == SYSFS) {
            if (!IvshmemDevices.isMemory(folder, name)) {
                throw new IOException("a file of sysfs must be resource2 of an ivshmem device");
            }
            if (settings.source() == RegionSettings.Source.REST && !settings.hasTag()) {
                throw new IOException("REST must name a device by its tag, ivshmem:TAG");
            }
        } else if (!MEMORY_FILE_SYSTEMS.contains(fileSystem)) {
            throw noMemory(fileSystem);
        }
        if (!status.isOwnOrRoots()) {
            throw new IOException("its owner must be the broker's user or root, since the owner can read the vGPU's "
                + "data: owner=" + status.owner());
        }
        if (status.links() != 1) {
            throw new IOException("the file must have one hard link: links=" + status.links());
        }
        if (status.isOpenToOthers()) {
            throw new IOException(String.format("others must have no permission on it, because it opens the vGPU: "
                + "mode=%o", status.permissions()));
        }
    }

    private static IOException noMemory(long fileSystem) {
        return new IOException("it must be on a memory file system, for example /dev/shm: fileSystem=0x"
            + Long.toHexString(fileSystem));
    }

    /**
     * Locks the region and maps it.
     *
     * @param lockDescriptor a second open file, because its lock must end with the broker, not with the last worker
     *     that holds the other descriptor. Closed when this throws.
     */
    private static RegionFile locked(RegionSettings settings, Made made, int descriptor, int lockDescriptor)
        throws IOException, RegionException {
        try {
            if (!FileLocks.tryLock(lockDescriptor, BROKER_BYTE)) {
                throw new IOException("another broker already serves it");
            }
            return map(settings, made, descriptor, lockDescriptor);
        } catch (IOException | RegionException | RuntimeException e) {
            Descriptors.close(lockDescriptor);
            throw e;
        }
    }

    private static RegionException conflict(RegionSettings settings, Exception cause) {
        return new RegionException(RegionException.Kind.CONFLICT, "cannot open the region: region="
            + settings.name() + " path=" + settings.place() + ": " + cause.getMessage());
    }

    /** Descriptor of the memory; owned by this object. */
    int descriptor() {
        return descriptor;
    }

    /** Layout of the region. */
    RegionGeometry geometry() {
        return geometry;
    }

    /** The broker's mapping. An access behind the end of a truncated file throws InternalError. */
    MemorySegment memory() {
        return mapping.memory();
    }

    /** Whether another process holds the lock of a slot. */
    boolean isSlotLocked(int slot) throws IOException {
        return FileLocks.isLocked(descriptor, slot);
    }

    /** Unmaps the memory, and removes the file if this broker created it. */
    @Override
    public void close() {
        mapping.close();
        if (made != null) {
            made.close();
        }
        if (lockDescriptor >= 0) {
            Descriptors.close(lockDescriptor);
        }
        Descriptors.close(descriptor);
    }
}
