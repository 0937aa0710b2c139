package io.hawser.broker.region;

import io.hawser.shm.os.FileStatus;
import io.hawser.shm.os.Folder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/**
 * The place of a region's file or socket: a name in a folder. The path from the root to the folder follows no link.
 *
 * @param root a folder that the machine's administrator chose; links on the path to it are trusted.
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
     * @throws IOException when the folder does not exist, or another user may write to a folder between it and the
     *     root.
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
                throw new IOException(String.format("a folder of regions must belong to the broker's user or root, "
                    + "and others must not have write permission: folder=%s owner=%d mode=%o", step, status.owner(),
                    status.permissions()));
            }
        }
        return here;
    }

    /** The whole path, for messages. */
    Path path() {
        Path path = root;
        for (String step : between) {
            path = path.resolve(step);
        }
        return path.resolve(name);
    }
}
