package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.BrokerColumn;
import io.hawser.ctl.terminal.Table;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code hawserctl regions}; lists the regions without a subcommand. */
@Command(name = "regions", description = "Lists, makes and deletes regions of shared memory.",
    synopsisSubcommandLabel = "[COMMAND]", subcommands = {RegionsCommand.ListCommand.class,
        RegionsCommand.ShowCommand.class, RegionsCommand.CreateCommand.class, RegionsCommand.DeleteCommand.class})
public final class RegionsCommand extends ApiCommand {
    private static final String PATH = "/api/v1/regions";

    @Override
    void run(ApiClient client) {
        print(client.get(PATH), RegionsCommand::table);
    }

    private static Table table(Object answer) {
        Table table = new Table("NAME", "STATE", "VGPU", ">SIZE", ">SLOTS", ">SESSIONS", "PLACE");
        for (Item region : Item.list(answer)) {
            table.row(region.text("name"), region.text("state") + (region.text("problem").isEmpty() ? ""
                : ": " + region.text("problem")), region.text("vgpu"), Units.size(region.number("sizeBytes")),
                region.number("slotsInUse") + "/" + region.number("slots"), region.number("sessions"),
                region.text("path") + region.text("doorbellSocket"));
        }
        return BrokerColumn.add(table, Item.list(answer));
    }

    private static Table details(Object answer) {
        Item region = Item.of(answer);
        Table table = new Table("FIELD", "VALUE");
        region.fields().keySet().forEach(key -> table.row(key, key.toString().endsWith("Bytes")
            ? Units.size(region.number(key.toString())) : region.text(key.toString())));
        return table;
    }

    private static String path(String name) {
        return PATH + "/" + ApiClient.segment(name);
    }

    /** {@code hawserctl regions list}. */
    @Command(name = "list", description = "Lists the regions.")
    static final class ListCommand extends ApiCommand {
        @Mixin
        private OneBroker broker;

        @Override
        void run(ApiClient client) {
            print(client.get(broker.query(PATH)), RegionsCommand::table);
        }
    }

    /** {@code hawserctl regions show}. */
    @Command(name = "show", description = "Shows one region.")
    static final class ShowCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;

        @Override
        void run(ApiClient client) {
            print(client.get(path(name)), RegionsCommand::details);
        }
    }

    /** {@code hawserctl regions create}. */
    @Command(name = "create", sortOptions = false,
        description = "Makes the broker serve a region. Access to the region is access to its vGPU.")
    static final class CreateCommand extends ApiCommand {
        private static final String IVSHMEM = "ivshmem:";

        @Parameters(paramLabel = "NAME")
        private String name;
        @ArgGroup(multiplicity = "1")
        private Place place;
        @Option(names = "--size", paramLabel = "SIZE", converter = SizeConverter.class,
            description = "64M, 1G (the file's size); a power of two for ivshmem.")
        private Long size;
        @Option(names = "--vgpu", paramLabel = "NAME", description = "The vGPU of the region (default).")
        private String vgpu;
        @Option(names = "--slots", paramLabel = "N", description = "Guest processes at a time, 1 to 64 (16).")
        private Integer slots;
        @Option(names = "--guest-timeout", paramLabel = "SECONDS",
            description = "Time after which a silent process in a virtual machine counts as dead (30).")
        private Integer guestTimeout;
        @Option(names = "--vectors", paramLabel = "N", description = "Number of doorbells (1 + slots).")
        private Integer vectors;
        private final Map<String, Object> body = new LinkedHashMap<>();

        /** The region's place. */
        static final class Place {
            @Option(names = "--path", paramLabel = "FILE", required = true,
                description = "A file in /dev/shm, or ivshmem:TAG for the ivshmem device that carries the tag.")
            private Path path;
            @Option(names = "--doorbell-socket", paramLabel = "SOCKET", required = true,
                description = "The socket where the broker serves QEMU's ivshmem-doorbell.")
            private Path doorbellSocket;
        }

        @Override
        void prepare() {
            body.put("name", name);
            // A path on this machine, which is also the broker's. The broker would resolve a relative path against its
            // own folder.
            put(body, "path", absolute(place.path));
            put(body, "doorbellSocket", absolute(place.doorbellSocket));
            put(body, "sizeBytes", size);
            put(body, "vgpu", vgpu);
            put(body, "slots", slots);
            put(body, "guestTimeoutMs", guestTimeout == null ? null : guestTimeout * 1000L);
            put(body, "vectors", vectors);
        }

        @Override
        void run(ApiClient client) {
            print(client.change("POST", PATH, body), RegionsCommand::details);
        }

        private String absolute(Path path) {
            if (path != null && !path.isAbsolute() && !path.toString().startsWith(IVSHMEM)) {
                throw new ParameterException(spec().commandLine(), "a path on the broker's machine must begin with /: "
                    + path);
            }
            return path == null ? null : path.toString();
        }

        private static void put(Map<String, Object> body, String name, Object value) {
            if (value != null) {
                body.put(name, value);
            }
        }
    }

    /** {@code hawserctl regions delete}. */
    @Command(name = "delete", description = "Ends a region and its sessions.")
    static final class DeleteCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;
        @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
        private boolean yes;

        @Override
        void run(ApiClient client) {
            confirm(yes, "Delete the region " + name + " and end its sessions?");
            client.change("DELETE", path(name), null);
            printDone("deleted: " + name);
        }
    }
}
