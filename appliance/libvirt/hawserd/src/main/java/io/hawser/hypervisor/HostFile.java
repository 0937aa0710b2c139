package io.hawser.hypervisor;

import io.hawser.ctl.CtlException;
import io.hawser.ctl.PrivateFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The file that keeps the host's UUID as libvirt last reported it.
 *
 * @param path of the file.
 */
record HostFile(Path path) {
    /** Reads the UUID; empty if there is none. */
    String read() {
        try {
            String text = Files.readString(path).strip();
            return text.matches("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}") ? text : "";
        } catch (IOException e) {
            return ""; // libvirt reports it again
        }
    }

    /** Stores the UUID. */
    void write(String uuid) {
        try {
            PrivateFiles.write(path, uuid + "\n");
        } catch (CtlException e) {
            Log.warn("", "the host's UUID cannot be stored: " + e.getMessage());
        }
    }
}
