package io.hawser.hypervisor.files;

import io.hawser.client.PrivateFiles;
import io.hawser.hypervisor.model.GuestSettings;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The settings of guests that use TCP or RDMA, one file for each, which QEMU shows the guest. Only root can open their
 * folder, because each file contains a token. Any thread, but one at a time for a domain.
 */
public final class GuestFiles {
    private static final Pattern NAME = Pattern.compile("([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\.toml");
    private static final Pattern CARRIER = Pattern.compile("^carrier = \"([^\"]*)\"$", Pattern.MULTILINE);
    private static final Pattern BROKER = Pattern.compile("^broker = \"([^\"]*)\"$", Pattern.MULTILINE);
    private static final Pattern TOKEN = Pattern.compile("^token = \"([^\"]*)\"$", Pattern.MULTILINE);
    private static final Pattern CA = Pattern.compile("^ca = \"\"\"\n(.*?)\"\"\"$", Pattern.MULTILINE | Pattern.DOTALL);

    private final Path folder;

    public GuestFiles(Path folder) {
        this.folder = folder;
    }

    /** The file of a domain's settings. */
    public Path path(UUID domain) {
        return folder.resolve(domain + ".toml");
    }

    /** Reads a domain's settings; empty if there are none, or if hawserd did not write the file. */
    public Optional<GuestSettings> read(UUID domain) {
        String text;
        try {
            text = Files.readString(path(domain));
        } catch (IOException e) {
            return Optional.empty(); // the caller then writes the file again
        }
        Matcher carrier = CARRIER.matcher(text);
        Matcher broker = BROKER.matcher(text);
        Matcher token = TOKEN.matcher(text);
        Matcher ca = CA.matcher(text);
        return carrier.find() && broker.find() && token.find()
            ? Optional.of(new GuestSettings(carrier.group(1), broker.group(1), token.group(1),
                ca.find() ? ca.group(1) : ""))
            : Optional.empty();
    }

    /** Writes a domain's settings, with mode 0600. */
    public void write(UUID domain, GuestSettings settings) {
        PrivateFiles.write(path(domain), text(settings));
    }

    /** The format that the guest's {@code hawser setup} reads. */
    static String text(GuestSettings settings) {
        String ca = settings.ca().isEmpty() || settings.ca().endsWith("\n") ? settings.ca() : settings.ca() + "\n";
        return "[guest]\ncarrier = \"" + settings.carrier() + "\"\nbroker = \"" + settings.broker()
            + "\"\ntoken = \"" + settings.token() + "\"\n" + (ca.isEmpty() ? "" : "ca = \"\"\"\n" + ca + "\"\"\"\n");
    }

    /** Removes a domain's settings, if there are any. */
    public void remove(UUID domain) throws IOException {
        Files.deleteIfExists(path(domain));
    }

    /** The domains that have settings. */
    public List<UUID> list() throws IOException {
        List<UUID> found = new ArrayList<>();
        if (Files.isDirectory(folder)) {
            try (DirectoryStream<Path> names = Files.newDirectoryStream(folder, "*.toml")) {
                for (Path file : names) {
                    Matcher matcher = NAME.matcher(file.getFileName().toString());
                    if (matcher.matches()) {
                        found.add(UUID.fromString(matcher.group(1)));
                    }
                }
            }
        }
        return found;
    }
}
