package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.ctl.cdi.Device;
import io.hawser.ctl.cdi.DeviceFiles;
import io.hawser.ctl.cdi.Specification;
import io.hawser.ctl.terminal.Table;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code hawserctl cdi}. */
@Command(name = "cdi", sortOptions = false, description = "Makes a vGPU a device of containers on this machine: podman"
    + " run --device hawser.io/vgpu=VGPU. Writes a CDI specification and a token; repeats change only what differs.")
public final class CdiCommand extends ApiCommand {
    private static final String USER = "--user";
    /** Of a region that this command makes; hawserd's default for a virtual machine, too. */
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");
    /** In TOML and in a variable these characters stand for themselves. */
    private static final Pattern PLAIN = Pattern.compile("[^\\s\"'\\\\\\p{Cntrl}]+");
    private static final List<String> ANY_ADDRESS = List.of("0.0.0.0", "[::]", "::", "[0:0:0:0:0:0:0:0]",
        "0:0:0:0:0:0:0:0");

    @Parameters(paramLabel = "VGPU", description = "The vGPU, and the name of the device.")
    private String vgpu;
    @Option(names = "--region", paramLabel = "NAME|FILE",
        description = "A region of the vGPU on this machine, for shared memory.")
    private String region;
    @Option(names = "--new-region", paramLabel = "SIZE", converter = SizeConverter.class,
        description = "Makes the region cdi-VGPU of this size in /dev/shm, unless the broker serves it already.")
    private Long newRegion;
    @Option(names = "--broker", paramLabel = "ADDRESS",
        description = "The broker as containers reach it: host:7654 or tls://host:7656 (the broker's own address).")
    private String broker;
    @Option(names = "--guest-token", paramLabel = "FILE",
        description = "A file with a token of the vGPU, to be copied (a new token for this device).")
    private Path guestToken;
    @Option(names = "--libraries", paramLabel = "DIR",
        description = "The guest libraries (those beside hawserctl, or /usr/lib/hawser/guest).")
    private Path libraries;
    @Option(names = "--output", paramLabel = "DIR", defaultValue = "/etc/cdi",
        description = "The folder of the specification (/etc/cdi). Podman also reads /var/run/cdi.")
    private Path output;
    @Option(names = "--files", paramLabel = "DIR", defaultValue = "/etc/hawser/cdi",
        description = "The folder of the devices' tokens and settings (/etc/hawser/cdi).")
    private Path files;
    @Option(names = "--remove",
        description = "Removes the device: its specification, its files, and the token and region made for it.")
    private boolean remove;
    @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
    private boolean yes;

    /** Of this machine; see {@link #useOwnUser}. */
    private String user;
    private Device device;
    private DeviceFiles written;

    /**
     * Replaces the inherited option {@code --user} of the command. Behind the command's name it means a user of this
     * machine, before the name the broker's user, as for all commands.
     */
    public static void useOwnUser(CommandLine line) {
        CommandSpec spec = line.getSubcommands().get("cdi").getCommandSpec();
        spec.remove(spec.findOption(USER));
        spec.addOption(OptionSpec.builder(USER).paramLabel("USER").type(String.class)
            .description("A user of this machine, who runs containers: owns the token and gets access to the region"
                + " (the caller). The broker's user stands before the command: hawserctl --user NAME cdi.")
            .build());
    }

    @Override
    void prepare() {
        user = spec().commandLine().getParseResult().matchedOptionValue(USER, (String) null);
        device = Device.of(vgpu, output, files);
        written = new DeviceFiles(device);
        boolean makes = Stream.of(user, region, newRegion, broker, guestToken, libraries).anyMatch(v -> v != null);
        if (remove && makes) {
            throw new ParameterException(spec().commandLine(), "--remove takes only --output, --files and --yes");
        }
        if (region != null && newRegion != null) {
            throw new ParameterException(spec().commandLine(), "a device has one region: --region or --new-region");
        }
        if (broker != null && !PLAIN.matcher(broker).matches()) {
            throw new ParameterException(spec().commandLine(), "an address is like host:7654: " + broker);
        }
        for (Path path : Arrays.asList(device.folder(), device.specification())) {
            if (!PLAIN.matcher(path.toString()).matches()) {
                throw new ParameterException(spec().commandLine(), "the folder's name must have no spaces or quotes: "
                    + path.getParent());
            }
        }
    }

    @Override
    void run(ApiClient client) {
        if (remove) {
            remove(client);
        } else {
            make(client);
        }
    }

    private void make(ApiClient client) {
        UserPrincipal owner = DeviceFiles.user(files, user);
        Path libraryFolder = libraryFolder();
        List<String> carriers = Arrays.asList(Item.of(client.get(vgpuPath())).text("carriers").split(","));
        boolean shared = region != null || newRegion != null;
        if (shared && !carriers.contains("shm") || !shared && !carriers.contains("tcp")) {
            throw new ClientException(Failure.INVALID, shared ? "the vGPU allows no shared memory: " + vgpu
                : "the vGPU allows only shared memory; name a region with --region or --new-region: " + vgpu);
        }
        String address = carriers.contains("tcp") ? address(client) : "";
        Path authorities = address.startsWith("tls://") ? client.endpoint().caFile() : null;
        Optional<Path> regionFile = shared ? Optional.of(regionFile(client)) : Optional.empty();
        written.makeFolders();
        String key = address.isEmpty() ? "" : token(client, owner);
        if (address.isEmpty()) {
            revokeOwn(client);
            written.removeToken();
        }
        if (authorities == null) {
            written.removeAuthorities();
        } else {
            written.writeAuthorities(authorities);
        }
        written.write(new Specification(device, libraryFolder, command(libraryFolder), address, authorities != null,
            regionFile), owner);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("device", device.qualifiedName());
        answer.put("specification", device.specification().toString());
        answer.put("user", user == null ? System.getProperty("user.name") : user);
        answer.put("broker", address);
        answer.put("tokenKey", key);
        answer.put("region", regionFile.map(Path::toString).orElse(""));
        answer.put("libraries", libraryFolder.toString());
        print(answer, ignored -> {
            Table table = new Table("FIELD", "VALUE");
            answer.forEach((name, value) -> table.row(name, value));
            return table.row("run", "podman run " + (needsHostNetwork(address, shared) ? "--network host " : "")
                + "--device " + device.qualifiedName() + " IMAGE PROGRAM");
        });
    }

    /** A container with a network of its own cannot reach the loopback address of the machine. */
    private static boolean needsHostNetwork(String address, boolean shared) {
        String host = address.replaceFirst("^tls://", "");
        return !shared && (host.startsWith("127.") || host.startsWith("[::1]") || host.startsWith("localhost"));
    }

    private String vgpuPath() {
        return "/api/v1/vgpus/" + ApiClient.segment(vgpu);
    }

    private static String regionPath(String name) {
        return "/api/v1/regions/" + ApiClient.segment(name);
    }

    /** The folder of the guest libraries, by its own path: a link may change while containers use it. */
    private Path libraryFolder() {
        String beside = System.getProperty("hawserctl.libraries", "");
        List<Path> places = libraries != null ? List.of(libraries)
            : Stream.of(beside, "/usr/lib/hawser/guest").filter(place -> !place.isEmpty()).map(Path::of).toList();
        for (Path place : places) {
            if (Files.isReadable(place.resolve("libcuda.so.1")) && Files.isReadable(place.resolve(
                "libhawser-audit.so"))) {
                try {
                    return place.toRealPath();
                } catch (IOException e) {
                    throw new ClientException(Failure.INVALID, "the folder cannot be read: " + place);
                }
            }
        }
        throw new ClientException(Failure.INVALID, "the folder has no guest libraries (libcuda.so.1, "
            + "libhawser-audit.so); install hawser-guest, or name their folder with --libraries: "
            + String.join(", ", places.stream().map(Path::toString).toList()));
    }

    /** The guest's command of an archive, a package or the build: containers show the vGPU with it. */
    private static Optional<Path> command(Path libraryFolder) {
        return Stream.of("../../bin/hawser", "../../../bin/hawser", "../bin/hawser").map(libraryFolder::resolve)
            .map(Path::normalize).filter(Files::isExecutable).findFirst();
    }

    /** The broker's address for guests. A broker of all addresses is reached by that of its REST interface. */
    private String address(ApiClient client) {
        if (broker != null) {
            return broker;
        }
        Item info = Item.of(client.get("/api/v1/broker"));
        String plain = info.text("guestEndpoint");
        String address = plain.isEmpty() ? info.text("guestTlsEndpoint") : plain;
        int colon = address.lastIndexOf(':');
        if (colon < 0) {
            throw new ClientException(Failure.INVALID, "the broker states no address for guests: name it with "
                + "--broker");
        }
        String host = ANY_ADDRESS.contains(address.substring(0, colon)) ? client.endpoint().url().getHost()
            : address.substring(0, colon);
        return (plain.isEmpty() ? "tls://" : "") + host + address.substring(colon);
    }

    /** Makes the device's token, or keeps it while the broker accepts it; returns its key. */
    private String token(ApiClient client, UserPrincipal owner) {
        Optional<String> present = DeviceFiles.readToken(device.token());
        List<Item> tokens = Item.list(client.get(vgpuPath() + "/tokens"));
        if (guestToken != null) {
            String given = DeviceFiles.readToken(guestToken).orElseThrow(() -> new ClientException(Failure.INVALID,
                "there is no such file: " + guestToken));
            String key = DeviceFiles.key(given);
            if (find(tokens, key).isEmpty()) {
                throw new ClientException(Failure.INVALID, "the file has no valid token of the vGPU " + vgpu + ": "
                    + guestToken);
            }
            if (!present.equals(Optional.of(given))) {
                revokeOwn(client);
            }
            written.writeToken(given, owner);
            return key;
        }
        if (present.isPresent() && find(tokens, DeviceFiles.key(present.get())).isPresent()) {
            written.writeToken(present.get(), owner); // for its owner, who may have changed
            return DeviceFiles.key(present.get());
        }
        Item made = Item.of(client.change("POST", vgpuPath() + "/tokens", Map.of("note", device.note())));
        try {
            written.writeToken(made.text("token"), owner);
        } catch (ClientException e) {
            client.change("DELETE", vgpuPath() + "/tokens/" + ApiClient.segment(made.text("keyId")), null);
            throw e;
        }
        return made.text("keyId");
    }

    /** The token of a key, if it has not expired. */
    private static Optional<Item> find(List<Item> tokens, String key) {
        return tokens.stream().filter(token -> token.text("keyId").equals(key) && isValid(token)).findFirst();
    }

    private static boolean isValid(Item token) {
        try {
            return !token.has("expires") || Instant.parse(token.text("expires")).isAfter(Instant.now());
        } catch (DateTimeParseException e) {
            return false;
        }
    }

    /** Revokes the token of the device's file if hawserctl made it for the device. */
    private void revokeOwn(ApiClient client) {
        Optional<String> key = written.key();
        if (key.isPresent() && Item.list(client.get(vgpuPath() + "/tokens")).stream().anyMatch(token -> token.text(
            "keyId").equals(key.get()) && token.text("note").equals(device.note()))) {
            client.change("DELETE", vgpuPath() + "/tokens/" + ApiClient.segment(key.get()), null);
        }
    }

    /** The file of the region, which must be on this machine and open this vGPU. */
    private Path regionFile(ApiClient client) {
        // In a pool, other brokers have regions of the same name on their own machines.
        String own = Item.of(client.get("/api/v1/broker")).text("name");
        List<Item> regions = Item.list(client.get("/api/v1/regions")).stream().filter(item -> own.equals(item.text(
            "broker"))).toList();
        String name = region == null ? device.ownRegion() : region;
        Item found = regions.stream().filter(item -> name.equals(item.text(name.contains("/") ? "path" : "name")))
            .findFirst().orElse(null);
        if (found == null && newRegion != null) {
            found = Item.of(client.change("POST", "/api/v1/regions", Map.of("name", name, "path",
                SHARED_MEMORY.resolve("hawser-" + name).toString(), "sizeBytes", newRegion, "vgpu", vgpu)));
        } else if (found == null) {
            throw new ClientException(Failure.NOT_FOUND, "the broker serves no such region: " + region);
        }
        if (!found.text("vgpu").equals(vgpu)) {
            throw new ClientException(Failure.INVALID, "the region opens another vGPU: region=" + name + " vgpu="
                + found.text("vgpu"));
        }
        Path file = Path.of(found.text("path"));
        if (!file.isAbsolute() || !Files.isRegularFile(file)) {
            throw new ClientException(Failure.INVALID, "the region's file is not on this machine: region=" + name
                + " path=" + file);
        }
        return file;
    }

    private void remove(ApiClient client) {
        if (!written.exist()) {
            throw new ClientException(Failure.NOT_FOUND, "there is no such device: " + device.specification());
        }
        confirm(yes, "Remove the device " + device.qualifiedName() + " and end the sessions of its token?");
        // Asked before anything is removed: without the broker the token would stay valid and nobody could name it.
        boolean known = isPresent(client, vgpuPath());
        boolean own = known && isPresent(client, regionPath(device.ownRegion())) && Item.of(client.get(regionPath(
            device.ownRegion()))).text("vgpu").equals(vgpu);
        written.removeSpecification();
        if (known) {
            revokeOwn(client);
        }
        if (own) {
            client.change("DELETE", regionPath(device.ownRegion()), null);
        }
        written.removeFolder();
        printDone("removed: " + device.qualifiedName());
    }

    private static boolean isPresent(ApiClient client, String path) {
        try {
            client.get(path);
            return true;
        } catch (ClientException e) {
            if (e.failure() == Failure.NOT_FOUND) {
                return false;
            }
            throw e;
        }
    }
}
