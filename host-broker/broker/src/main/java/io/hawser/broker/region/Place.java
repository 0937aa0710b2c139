package io.hawser.broker.region;

import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.Folder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/**
 * Where a region has a file or a socket: a name in a folder. The way from the root to the folder follows no link.
 *
 * @param root a folder that the machine's administrator chose; links on the way to it are the administrator's.
 * @param between names of the folders from the root to the name's folder.
 * @param name of the file or socket.
 */
record Place(Path root, List<String> between, String name) {
    /** A path that the machine's administrator chose, absolute. */
    static Place ofAdministrator(Path path) {
        return new Place(path.getParent(), List.of(), path.getFileName().toString());
    }

    /**
     * Opens the name's folder.
     *
     * @throws IOException when there is no such folder, or another user may put files into one between it and the root.
     */
    Folder open() throws IOException {
        Folder here = Folder.open(root);
        for (String step : between) {
            try (Folder above = here) {
                here = above.folder(step);
            }
            FileStatus status = here.status();
            if (!status.isOwnOrRoots() || status.isWritableByOthers()) {
                here.close();
                throw new IOException(String.format("a folder of regions must be the broker's or root's, and nobody "
                    + "else may write to it: folder=%s owner=%d mode=%o", step, status.owner(), status.permissions()));
            }
        }
        return here;
    }

    /** The whole path, for people. */
    Path path() {
        Path path = root;
        for (String step : between) {
            path = path.resolve(step);
        }
        return path.resolve(name);
    }
}
