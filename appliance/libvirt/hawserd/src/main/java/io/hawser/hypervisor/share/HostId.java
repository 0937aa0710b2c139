package io.hawser.hypervisor.share;

import io.hawser.client.ClientException;
import io.hawser.client.PrivateFiles;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.log.Log;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The host's UUID as libvirt last reported it. A file keeps it, because libvirtd calls hooks for starting domains
 * before it accepts connections. Any thread.
 */
public final class HostId {
    private final Path file;
    private volatile String uuid; // empty until libvirt reports it for the first time

    /** Reads the UUID from the file, if there is one. */
    public HostId(Path file) {
        this.file = file;
        uuid = read(file);
    }

    private static String read(Path file) {
        try {
            String text = Files.readString(file).strip();
            return text.matches("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}") ? text : "";
        } catch (IOException e) {
            return ""; // libvirt reports it again
        }
    }

    /**
     * The UUID, in lower case.
     *
     * @throws HypervisorException if libvirt has never answered.
     */
    public String uuid() {
        String known = uuid;
        if (known.isEmpty()) {
            throw new HypervisorException(HypervisorException.Reason.DISCONNECTED,
                "hawserd has not connected to libvirt yet");
        }
        return known;
    }

    /** Stores the UUID that libvirt reports. */
    public void learn(String reported) {
        if (reported.equals(uuid)) {
            return;
        }
        uuid = reported;
        try {
            PrivateFiles.write(file, reported + "\n");
        } catch (ClientException e) {
            Log.warn("", "the host's UUID cannot be stored: " + e.getMessage());
        }
    }
}
