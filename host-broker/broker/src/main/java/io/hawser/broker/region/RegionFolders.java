package io.hawser.broker.region;

import io.hawser.broker.config.BrokerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/**
 * The folders below which REST may place regions, because an operator must not choose which files of the machine the
 * broker creates, formats or removes. Regions of the settings may be anywhere, because the machine's administrator
 * chose them. Any thread.
 */
public final class RegionFolders {
    private static final String OWN = "doorbells";

    private final List<Path> memory;
    private final List<Path> sockets;
    private final Path own;

    private RegionFolders(List<Path> memory, List<Path> sockets, Path own) {
        this.memory = memory;
        this.sockets = sockets;
        this.own = own;
    }

    /**
     * Reads the folders from the settings.
     *
     * @param stateDir the broker's folder, which holds the sockets unless the settings name another one.
     * @throws IllegalArgumentException when a folder's path is not absolute.
     */
    public static RegionFolders of(BrokerConfig config, Path stateDir) {
        Path own = stateDir.resolve(OWN).toAbsolutePath().normalize();
        return new RegionFolders(checked("hawser.region-folders", config.regionFolders()),
            config.doorbellFolders().map(list -> checked("hawser.doorbell-folders", list)).orElse(List.of(own)), own);
    }

    private static List<Path> checked(String setting, List<Path> folders) {
        for (Path folder : folders) {
            if (!folder.isAbsolute()) {
                throw new IllegalArgumentException(setting + " must name absolute paths: " + folder);
            }
        }
        // The longest first, so that a nested folder matches before its parent.
        return folders.stream().map(Path::normalize).sorted(Comparator.comparing(Path::getNameCount).reversed())
            .toList();
    }

    /**
     * The place of a region's file or socket. Reads no file, so that a refusal reveals nothing of the machine.
     *
     * @param settings with a path or a socket, without a tag.
     * @throws RegionException when REST named a path outside the folders.
     */
    Place place(RegionSettings settings) throws RegionException {
        boolean isSocket = settings.hasDoorbell();
        Path path = isSocket ? settings.doorbellSocket() : settings.path();
        if (settings.source() == RegionSettings.Source.ADMINISTRATOR) {
            return Place.ofAdministrator(path);
        }
        List<Path> folders = isSocket ? sockets : memory;
        return folders.stream().map(folder -> below(folder, path)).flatMap(Optional::stream).findFirst()
            .orElseThrow(() -> new RegionException(RegionException.Kind.INVALID, isSocket
                ? "a doorbell socket from REST must be below a folder of hawser.doorbell-folders: folders=" + folders
                : "a region's path from REST must be below a folder of hawser.region-folders, or be ivshmem:TAG: "
                    + "folders=" + folders));
    }

    private static Optional<Place> below(Path folder, Path path) {
        if (!path.startsWith(folder) || path.getNameCount() <= folder.getNameCount()) {
            return Optional.empty();
        }
        List<String> names = new ArrayList<>();
        path.subpath(folder.getNameCount(), path.getNameCount()).forEach(name -> names.add(name.toString()));
        // Not normalized: below a link, ".." refers to another folder.
        if (names.contains("..") || names.contains(".")) {
            return Optional.empty();
        }
        return Optional.of(new Place(folder, List.copyOf(names.subList(0, names.size() - 1)), names.getLast()));
    }

    /** Creates the broker's own folder of sockets before its first socket; the settings do not name that folder. */
    void prepare(Place place) throws IOException {
        if (place.root().equals(own) && !Files.isDirectory(own, LinkOption.NOFOLLOW_LINKS)) {
            Files.createDirectory(own,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        }
    }
}
