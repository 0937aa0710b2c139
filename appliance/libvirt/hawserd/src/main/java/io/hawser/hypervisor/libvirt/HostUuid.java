package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The host's UUID. libvirt's QEMU driver reports it in its capabilities. The Xen driver does not, even if {@code
 * host_uuid} is set in libvirtd.conf. For Xen this class reads the sources that libvirt itself uses: the machine's
 * firmware, else the system's machine-id.
 */
final class HostUuid {
    private static final Pattern IN_CAPABILITIES = Pattern.compile("<host>\\s*<uuid>([0-9a-fA-F-]{36})</uuid>");
    private static final Pattern DIGITS = Pattern.compile("\\s*([0-9a-fA-F]{8})-?([0-9a-fA-F]{4})-?([0-9a-fA-F]{4})-?"
        + "([0-9a-fA-F]{4})-?([0-9a-fA-F]{12})\\s*");
    private static final List<Path> FILES = List.of(Path.of("/sys/class/dmi/id/product_uuid"),
        Path.of("/etc/machine-id"));

    private HostUuid() {}

    /**
     * The UUID from a driver's capabilities, else from this machine's files.
     *
     * @return in lower case.
     */
    static String of(String capabilities) {
        return of(capabilities, FILES);
    }

    static String of(String capabilities, List<Path> files) {
        Matcher said = IN_CAPABILITIES.matcher(capabilities);
        if (said.find()) {
            return said.group(1).toLowerCase(Locale.ROOT);
        }
        for (Path file : files) {
            Matcher digits = DIGITS.matcher(firstLineOf(file));
            // In firmware without a configured UUID all digits are equal.
            if (digits.matches() && digits.group().replaceAll("[\\s-]", "").chars().distinct().count() > 1) {
                return String.join("-", digits.group(1), digits.group(2), digits.group(3), digits.group(4),
                    digits.group(5)).toLowerCase(Locale.ROOT);
            }
        }
        throw new HypervisorException(Reason.REFUSED, "the host has no UUID: libvirt's capabilities name none, and "
            + String.join(" and ", files.stream().map(Path::toString).toList())
            + " have none (systemd-machine-id-setup makes one)");
    }

    private static String firstLineOf(Path file) {
        try {
            return Files.readAllLines(file).stream().findFirst().orElse("");
        } catch (IOException e) {
            return ""; // this machine has no such file; the next one may exist
        }
    }
}
