package io.hawser.ctl.cdi;

import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.client.Problems;
import java.io.IOException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.nio.file.attribute.UserPrincipalNotFoundException;
import java.util.Optional;

/**
 * The files of a device. Each file appears whole, with its owner. The folders belong to the caller, never to the user
 * of the containers, because that user could put links into them.
 */
public final class DeviceFiles {
    private static final String READABLE = "rw-r--r--";
    private static final String PRIVATE = "rw-------";
    private static final String FOLDER = "rwxr-xr-x";

    private final Device device;

    /** The files of a device, present or not. */
    public DeviceFiles(Device device) {
        this.device = device;
    }

    /**
     * Finds a user of this machine.
     *
     * @param name or number of the user; null for none.
     * @return the user, or null for none.
     * @throws ClientException if the machine has no such user.
     */
    public static UserPrincipal user(Path folder, String name) {
        try {
            return name == null ? null
                : folder.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName(name);
        } catch (UserPrincipalNotFoundException e) {
            throw new ClientException(Failure.INVALID, "this machine has no such user: " + name);
        } catch (IOException e) {
            throw failure("the users cannot be read", Path.of("/etc/passwd"), e);
        }
    }

    /** The token's key, which is no secret; empty if there is no token. */
    public Optional<String> key() {
        return readToken(device.token()).map(DeviceFiles::key);
    }

    /** The key of a token, {@code keyId.secret}. */
    public static String key(String token) {
        return token.substring(0, Math.max(0, token.indexOf('.')));
    }

    /**
     * Reads a file that holds a token.
     *
     * @return empty if there is no such file.
     */
    public static Optional<String> readToken(Path file) {
        try {
            return Optional.of(Files.readString(file).strip());
        } catch (NoSuchFileException e) {
            return Optional.empty();
        } catch (IOException e) {
            throw failure("the file cannot be read", file, e);
        }
    }

    /** The region's file of the present specification; empty also if another program has damaged it. */
    public Optional<Path> region() {
        try {
            return Specification.region(Item.of(Json.read(Files.readString(device.specification()))));
        } catch (IOException | ClientException | InvalidPathException e) {
            return Optional.empty();
        }
    }

    /** Whether any of the device's files exists. */
    public boolean exist() {
        return Files.exists(device.specification()) || Files.exists(device.folder());
    }

    /** Makes the folders. */
    public void makeFolders() {
        makeFolder(device.folder());
        makeFolder(device.output());
    }

    /** Writes the token, for the owner's eyes alone. */
    public void writeToken(String token, UserPrincipal owner) {
        write(device.token(), token + "\n", PRIVATE, owner);
    }

    /** Writes the certificates of the broker's authorities. */
    public void writeAuthorities(Path from) {
        try {
            write(device.authorities(), Files.readString(from), READABLE, null);
        } catch (IOException e) {
            throw failure("the file cannot be read", from, e);
        }
    }

    /**
     * Writes settings and specification, the specification last: Podman takes the device from then on. Their user, and
     * no earlier one, gets access to the region.
     */
    public void write(Specification specification, UserPrincipal owner) {
        region().ifPresent(this::withdraw);
        write(device.settings(), specification.settings(), PRIVATE, owner);
        specification.region().ifPresent(this::grant);
        write(device.specification(), specification.text(), READABLE, null);
    }

    /** Removes the specification, so that no further container gets the device. */
    public void removeSpecification() {
        region().ifPresent(this::withdraw);
        remove(device.specification());
    }

    /** Removes the other files, and the folder if nothing else is in it. */
    public void removeFolder() {
        removeToken();
        remove(device.settings());
        removeAuthorities();
        remove(device.folder());
    }

    /** Removes the token. */
    public void removeToken() {
        remove(device.token());
    }

    /** Removes the certificates. */
    public void removeAuthorities() {
        remove(device.authorities());
    }

    private void grant(Path region) {
        try {
            int user = owner(device.settings());
            if (owner(region) != user) {
                AccessList.grant(region, user);
            }
        } catch (IOException e) {
            throw failure("the user gets no access to the region", region, e);
        }
    }

    /** The owner of the present settings is the user who has had access. */
    private void withdraw(Path region) {
        try {
            if (Files.exists(device.settings()) && Files.exists(region)) {
                AccessList.withdraw(region, owner(device.settings()));
            }
        } catch (IOException e) {
            throw failure("the user keeps the access to the region", region, e);
        }
    }

    private static int owner(Path file) throws IOException {
        return (int) Files.getAttribute(file, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    }

    /** Makes a folder and those above it. The umask may be 077, but the containers' user must reach the files. */
    private static void makeFolder(Path folder) {
        try {
            if (!Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS)) {
                if (!Files.isDirectory(folder.getParent())) {
                    makeFolder(folder.getParent());
                }
                Files.createDirectory(folder);
                Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString(FOLDER));
            }
        } catch (IOException e) {
            throw failure("the folder cannot be made", folder, e);
        }
    }

    private static void write(Path file, String text, String permissions, UserPrincipal owner) {
        try {
            // Podman ignores the name without .json. Mode 0600 until the text is whole.
            Path next = Files.createTempFile(file.getParent(), ".hawserctl", "",
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(PRIVATE)));
            try {
                Files.writeString(next, text);
                Files.setPosixFilePermissions(next, PosixFilePermissions.fromString(permissions));
                if (owner != null) {
                    Files.setOwner(next, owner);
                }
                Files.move(next, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(next);
            }
        } catch (IOException e) {
            throw failure("the file cannot be written", file, e);
        }
    }

    private static void remove(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (DirectoryNotEmptyException e) {
            return; // files of others stay
        } catch (IOException e) {
            throw failure("the file cannot be removed", file, e);
        }
    }

    private static ClientException failure(String what, Path file, IOException cause) {
        return new ClientException(Failure.INVALID, what + ": " + file + ": " + Problems.of(cause));
    }
}
