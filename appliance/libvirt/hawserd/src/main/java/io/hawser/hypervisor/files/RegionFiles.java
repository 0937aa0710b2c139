package io.hawser.hypervisor.files;

import io.hawser.hypervisor.model.Shmem;
import io.hawser.shm.os.Descriptors;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The files of regions, {@code /dev/shm/hawser-UUID}. Every user may make files in that folder, so this class follows
 * no link and accepts no file of an unknown user. Any thread, but one at a time for a domain.
 */
public final class RegionFiles {
    private static final Pattern NAME = Pattern.compile(Shmem.PREFIX
        + "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})");

    private final Path folder;
    private final int owner;
    private final int group;
    private final Set<PosixFilePermission> mode;
    private final Set<Integer> makers;

    /**
     * @param folder the folder of the files.
     * @param owner user id of the files: the user that runs the broker.
     * @param group group id of the files, whose members run QEMU.
     * @param makers further user ids that may have made a device's file: the users that run QEMU.
     */
    public RegionFiles(Path folder, int owner, int group, Set<PosixFilePermission> mode, Set<Integer> makers) {
        this.folder = folder;
        this.owner = owner;
        this.group = group;
        this.mode = Set.copyOf(mode);
        this.makers = Set.copyOf(makers);
    }

    /** The path of a domain's region. */
    public Path path(UUID domain) {
        return folder.resolve(Shmem.PREFIX + domain);
    }

    /** Whether anything has that path. */
    public boolean exists(UUID domain) {
        return Files.exists(path(domain), LinkOption.NOFOLLOW_LINKS);
    }

    /** Whether a domain's file exists, with that length. */
    public boolean hasLength(UUID domain, long bytes) throws IOException {
        try {
            Map<String, Object> facts = Files.readAttributes(path(domain), "unix:uid,size,isRegularFile",
                LinkOption.NOFOLLOW_LINKS);
            return (Boolean) facts.get("isRegularFile") && (Integer) facts.get("uid") == owner
                && (Long) facts.get("size") == bytes;
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    /**
     * Makes the zeroed file of a domain that does not have it open, and allocates its memory. Removes an existing file
     * of that name: it is left over, or another user wanted to read the domain's memory.
     *
     * @throws IOException a sentence; no file is left.
     */
    public void make(UUID domain, long bytes) throws IOException {
        Path path = path(domain);
        Files.deleteIfExists(path);
        int descriptor = Descriptors.create(path);
        try {
            try {
                Descriptors.reserve(descriptor, bytes);
            } catch (IOException e) {
                FileStore store = Files.getFileStore(folder);
                throw new IOException(folder + " has no room for a region: bytes=" + bytes + " free="
                    + store.getUsableSpace(), e);
            }
            setOwnerAndMode(descriptor);
        } catch (IOException | RuntimeException e) {
            Files.deleteIfExists(path);
            throw e;
        } finally {
            Descriptors.close(descriptor);
        }
    }

    /**
     * Takes over the file of a device that a user has plugged in. libvirt and QEMU made the file if it was missing.
     *
     * @throws IOException a sentence: the file is missing or too short, or other users could have it open.
     */
    public void takeOver(UUID domain, long bytes) throws IOException {
        Path path = path(domain);
        int descriptor;
        try {
            descriptor = Descriptors.openNoLink(path);
        } catch (IOException e) {
            throw new IOException("the file of the device cannot be opened: " + e.getMessage(), e);
        }
        try {
            Map<String, Object> facts = Files.readAttributes(of(descriptor), "unix:uid,nlink,size,isRegularFile");
            int uid = (Integer) facts.get("uid");
            if (!(Boolean) facts.get("isRegularFile") || (Integer) facts.get("nlink") != 1) {
                throw new IOException("the file of the device must be a file with one name: " + path);
            }
            if (uid != owner && uid != 0 && !makers.contains(uid)) {
                throw new IOException("the broker, root or QEMU must have made the device's file: "
                    + path + " uid=" + uid);
            }
            long size = (Long) facts.get("size");
            if (size < bytes) {
                throw new IOException("the file of the device must be as long as the region: " + path + " bytes=" + size
                    + " region=" + bytes);
            }
            setOwnerAndMode(descriptor);
        } finally {
            Descriptors.close(descriptor);
        }
    }

    /** Works on the descriptor, because the name may refer to another file by now. */
    private void setOwnerAndMode(int descriptor) throws IOException {
        Path file = of(descriptor);
        Map<String, Object> facts = Files.readAttributes(file, "unix:uid,gid");
        // The mode first: until the owner changes, no other user can replace the file.
        Files.setPosixFilePermissions(file, mode);
        if ((Integer) facts.get("gid") != group) {
            Files.setAttribute(file, "unix:gid", group);
        }
        if ((Integer) facts.get("uid") != owner) {
            Files.setAttribute(file, "unix:uid", owner);
        }
    }

    private static Path of(int descriptor) {
        return Path.of("/proc/self/fd/" + descriptor);
    }

    /** Whether a broker has formatted the file; false if there is none. */
    public boolean isFormatted(UUID domain) throws IOException {
        try (FileChannel channel = FileChannel.open(path(domain), StandardOpenOption.READ,
            LinkOption.NOFOLLOW_LINKS)) {
            ByteBuffer magic = ByteBuffer.allocate(Long.BYTES);
            return channel.read(magic, 0) == Long.BYTES && magic.getLong(0) != 0;
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    /** Removes a domain's file, or anything else with its name. */
    public void remove(UUID domain) throws IOException {
        Files.deleteIfExists(path(domain));
    }

    /** The domains that have files. */
    public List<UUID> list() throws IOException {
        List<UUID> found = new ArrayList<>();
        try (DirectoryStream<Path> names = Files.newDirectoryStream(folder, Shmem.PREFIX + "*")) {
            for (Path file : names) {
                uuidOf(file).ifPresent(found::add);
            }
        }
        return found;
    }

    private static Optional<UUID> uuidOf(Path file) {
        var matcher = NAME.matcher(file.getFileName().toString());
        return matcher.matches() ? Optional.of(UUID.fromString(matcher.group(1))) : Optional.empty();
    }

    /**
     * Whether a file is left over, as far as this process can tell: it belongs to the owner or root, has the given age,
     * and no process maps it. Another hawserd with its own libvirtd may have files in the same folder.
     */
    public boolean isAbandoned(UUID domain, Duration age) throws IOException {
        Path path = path(domain);
        Map<String, Object> facts;
        try {
            facts = Files.readAttributes(path, "unix:uid,ctime,ino", LinkOption.NOFOLLOW_LINKS);
        } catch (NoSuchFileException e) {
            return false;
        }
        int uid = (Integer) facts.get("uid");
        Instant changed = ((java.nio.file.attribute.FileTime) facts.get("ctime")).toInstant();
        if (uid != owner && uid != 0 || changed.isAfter(Instant.now().minus(age))) {
            return false;
        }
        return !isMapped(domain);
    }

    /** Whether a process maps a domain's file, as far as this process may read the maps. */
    public boolean isMapped(UUID domain) throws IOException {
        Path path = path(domain);
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path process : processes) {
                if (maps(process.resolve("maps"), path.toString())) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean maps(Path maps, String path) {
        try (Stream<String> lines = Files.lines(maps, java.nio.charset.StandardCharsets.ISO_8859_1)) {
            return lines.anyMatch(line -> line.endsWith(path));
        } catch (IOException | java.io.UncheckedIOException e) {
            return false; // the process has ended, or its maps may not be read
        }
    }

    /** Parses a mode such as {@code 0660}. */
    public static Set<PosixFilePermission> mode(String octal) {
        int bits = Integer.parseInt(octal, 8);
        StringBuilder text = new StringBuilder();
        for (int bit = 8; bit >= 0; bit--) {
            text.append((bits >> bit & 1) == 0 ? '-' : "xwr".charAt(bit % 3));
        }
        return PosixFilePermissions.fromString(text.toString());
    }
}
