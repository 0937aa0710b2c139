package io.hawser.ctl.cdi;

import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import java.nio.file.Path;
import java.util.regex.Pattern;

/**
 * The names and files of a vGPU's container device.
 *
 * @param vgpu name of the vGPU, which is also the device's.
 * @param output folder of the specification.
 * @param files folder of the devices' private folders.
 */
public record Device(String vgpu, Path output, Path files) {
    /** Vendor and class of the devices. */
    public static final String KIND = "hawser.io/vgpu";
    /**
     * The names that both the broker and CDI accept. The name becomes a part of paths, so it is checked before its use.
     */
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?");

    /**
     * A device with absolute paths.
     *
     * @throws ClientException if the name cannot be a device's.
     */
    public static Device of(String vgpu, Path output, Path files) {
        if (!NAME.matcher(vgpu).matches()) {
            throw new ClientException(Failure.INVALID, "the name of a container device has letters, digits, - _ . and "
                + "begins and ends with a letter or digit: " + vgpu);
        }
        return new Device(vgpu, output.toAbsolutePath().normalize(), files.toAbsolutePath().normalize());
    }

    /** The name for {@code podman run --device}. */
    public String qualifiedName() {
        return KIND + "=" + vgpu;
    }

    /** The specification; Podman reads only names that end in .json or .yaml. */
    public Path specification() {
        return output.resolve("hawser.io-vgpu-" + vgpu + ".json");
    }

    /** The private folder. */
    public Path folder() {
        return files.resolve(vgpu);
    }

    /** The token of the vGPU; the user of the containers owns it. */
    public Path token() {
        return folder().resolve("token");
    }

    /** The settings of the guest libraries; the user of the containers owns them. */
    public Path settings() {
        return folder().resolve("guest.toml");
    }

    /** The authorities to trust for the broker's certificate. */
    public Path authorities() {
        return folder().resolve("ca.pem");
    }

    /** The note of the tokens that hawserctl makes for the device. */
    public String note() {
        return "container device " + qualifiedName();
    }

    /** The name of the region that hawserctl makes for the device. */
    public String ownRegion() {
        return "cdi-" + vgpu;
    }
}
