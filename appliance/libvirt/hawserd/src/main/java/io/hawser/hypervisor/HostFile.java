package io.hawser.hypervisor;

import io.hawser.ctl.CtlException;
import io.hawser.ctl.PrivateFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The host's UUID as libvirt told it last.
 *
 * @param path of the file.
 */
record HostFile(Path path) {
    /** What it says; empty when there is none. */
    String read() {
        try {
            String text = Files.readString(path).strip();
            return text.matches("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}") ? text : "";
        } catch (IOException e) {
            return ""; // libvirt tells it again
        }
    }

    /** Keeps it. */
    void write(String uuid) {
        try {
            PrivateFiles.write(path, uuid + "\n");
        } catch (CtlException e) {
            Log.warn("", "the host's UUID cannot be kept: " + e.getMessage());
        }
    }
}
