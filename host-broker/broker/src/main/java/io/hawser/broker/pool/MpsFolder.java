package io.hawser.broker.pool;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.Folder;
import io.hawser.shm.os.PinnedFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The folder of the pipes of NVIDIA's MPS. NVIDIA's driver connects to any daemon that listens there, so only root or
 * the broker's user may have made the folder. Each worker gets the folder's path in its environment; without that
 * variable the driver would look in /tmp/nvidia-mps, which any user of the machine can make.
 *
 * @param path absolute; nothing need be there.
 */
public record MpsFolder(Path path) {
    /** The variable in which NVIDIA's driver and daemon find the path. */
    public static final String VARIABLE = "CUDA_MPS_PIPE_DIRECTORY";

    /** Used when neither the setting nor the broker's environment names a folder. */
    private static final String DEFAULT = "/run/nvidia-mps";
    private static final Path UNSAFE_DEFAULT = Path.of("/tmp/nvidia-mps"); // NVIDIA's
    private static final int STICKY = 01000; // Linux linux/stat.h

    /**
     * Finds and checks the folder: the setting's, else the environment's, else the default.
     *
     * @param environment of the broker.
     * @return empty with the software GPU, which has no MPS.
     * @throws IOException when a user other than root and the broker's could have made the folder, or could make the
     *     folder later. The message names the folder.
     */
    public static Optional<MpsFolder> of(BrokerConfig config, Map<String, String> environment) throws IOException {
        if (config.gpu().backend().equals("software")) {
            return Optional.empty();
        }
        String inherited = environment.getOrDefault(VARIABLE, "");
        Path path = config.mps().pipeDirectory().orElseGet(() -> inherited.isEmpty()
            ? Path.of(DEFAULT) : Path.of(inherited));
        MpsFolder folder = new MpsFolder(path.toAbsolutePath().normalize());
        folder.check();
        return Optional.of(folder);
    }

    /** Follows the path from the root, by descriptors and over no link, as far as there are folders. */
    private void check() throws IOException {
        Folder here = Folder.open(Path.of("/"));
        try {
            for (int i = 0; i < path.getNameCount(); i++) {
                String name = path.getName(i).toString();
                Optional<PinnedFile> found = here.find(name);
                if (found.isEmpty()) {
                    requireSafeToMake(here.status(), name);
                    return;
                }
                try (PinnedFile next = found.get()) {
                    requireOwned(next.status(), name, i == path.getNameCount() - 1);
                }
                try (Folder above = here) {
                    here = above.folder(name);
                }
                requireOwned(here.status(), name, i == path.getNameCount() - 1); // the name's folder may have changed
            }
        } finally {
            here.close();
        }
    }

    /** Users other than the owner may add to a sticky folder, but may replace nothing there. */
    private void requireOwned(FileStatus status, String name, boolean last) throws IOException {
        boolean sticky = (status.permissions() & STICKY) != 0;
        if (!status.isFolder() || !status.isOwnOrRoots() || status.isWritableByOthers() && (last || !sticky)) {
            throw new IOException(String.format("the folder of MPS and the folders above it must be the broker's or "
                + "root's, no links, and nobody else may write to them (make %s as root, start MPS's daemon with %s "
                + "and the broker with hawser.mps.pipe-directory of that path): folder=%s part=%s owner=%d mode=%o",
                DEFAULT, VARIABLE, path, name, status.owner(), status.permissions()));
        }
    }

    private void requireSafeToMake(FileStatus above, String name) throws IOException {
        if (above.isWritableByOthers()) {
            throw new IOException(String.format("the folder of MPS must exist, or only the broker's user and root may "
                + "be able to make it (set hawser.mps.pipe-directory): folder=%s missing=%s", path, name));
        }
    }

    /** A sentence for the operator when a daemon of MPS serves only the folder that any user can make. */
    public List<String> warnings() {
        boolean unused = !isServed() && Files.exists(UNSAFE_DEFAULT.resolve("control"));
        return unused ? List.of("MPS in " + UNSAFE_DEFAULT + " is not used, since any user of this machine can make "
            + "that folder: start MPS's daemon with " + VARIABLE + "=" + path) : List.of();
    }

    /** Whether an MPS control daemon has its pipes there, and lives. */
    public boolean isServed() {
        if (!Files.exists(path.resolve("control"))) {
            return false;
        }
        Path pid = path.resolve("nvidia-cuda-mps-control.pid");
        if (!Files.exists(pid)) {
            return true; // the daemon's process may be in another name space
        }
        try {
            return Files.exists(Path.of("/proc", Files.readString(pid).strip()));
        } catch (IOException | IllegalArgumentException e) {
            return true; // there, and not ours to read
        }
    }
}
