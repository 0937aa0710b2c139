package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.BrokerColumn;
import io.hawser.ctl.terminal.LivePicture;
import io.hawser.ctl.terminal.Table;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code hawserctl vgpus}; lists the vGPUs without a subcommand. */
@Command(name = "vgpus", description = "Lists, makes, changes, moves and deletes vGPUs.",
    synopsisSubcommandLabel = "[COMMAND]",
    subcommands = {VgpusCommand.ListCommand.class, VgpusCommand.ShowCommand.class, VgpusCommand.StatisticsCommand.class,
        VgpusCommand.CreateCommand.class,
        VgpusCommand.ChangeCommand.class, VgpusCommand.MoveCommand.class, VgpusCommand.RebalanceCommand.class,
        VgpusCommand.DeleteCommand.class})
public final class VgpusCommand extends ApiCommand {
    private static final String PATH = "/api/v1/vgpus";

    @Override
    void run(ApiClient client) {
        print(client.get(PATH), VgpusCommand::table);
    }

    private static Table table(Object answer) {
        Table table = new Table("NAME", "STATE", ">MEMORY", ">USED", ">SWAPPED", ">SHARE", "MODE", "GPUS", "CARRIERS",
            ">SESSIONS", ">TOKENS", "OWNER", "ORIGIN");
        for (Item vgpu : Item.list(answer)) {
            table.row(vgpu.text("name"), vgpu.text("state") + (vgpu.text("problem").isEmpty() ? ""
                : ": " + vgpu.text("problem")), quota(vgpu), Units.size(vgpu.number("usedBytes")),
                LivePicture.swapped(vgpu), vgpu.number("computeShare"), vgpu.text("mode"), vgpu.text("gpus"),
                vgpu.text("carriers"),
                sessions(vgpu), vgpu.number("tokens"), owner(vgpu), vgpu.text("origin"));
        }
        return BrokerColumn.add(table, Item.list(answer));
    }

    /** The reserved memory on each GPU. */
    static String quota(Item vgpu) {
        return vgpu.number("memoryBytes") == 0 ? "best effort" : Units.size(vgpu.number("memoryBytes"));
    }

    private static String sessions(Item vgpu) {
        return vgpu.number("sessions") + (vgpu.number("maxSessions") == 0 ? "" : "/" + vgpu.number("maxSessions"));
    }

    private static String owner(Item vgpu) {
        Item owner = vgpu.item("owner");
        return owner.text("id").isEmpty() ? "-" : owner.text("kind") + ":" + owner.text("id");
    }

    private static String labels(Item vgpu) {
        return vgpu.item("labels").fields().entrySet().stream().map(label -> label.getKey() + "=" + label.getValue())
            .collect(Collectors.joining(" "));
    }

    /** All fields of one vGPU. */
    private static Table details(Object answer) {
        Item vgpu = Item.of(answer);
        Table table = new Table("FIELD", "VALUE").row("name", vgpu.text("name")).row("id", vgpu.text("id"))
            .row("state", vgpu.text("state")).row("problem", vgpu.text("problem")).row("owner", owner(vgpu))
            .row("memory", quota(vgpu)).row("used", Units.size(vgpu.number("usedBytes")))
            .row("share", vgpu.number("computeShare")).row("mode", vgpu.text("mode")).row("gpus", vgpu.text("gpus"))
            .row("placed on", vgpu.text("placedGpus")).row("carriers", vgpu.text("carriers"))
            .row("communication", vgpu.text("communication")).row("swappable", vgpu.text("swappable"))
            .row("rdma", vgpu.text("rdma"))
            .row("expires", vgpu.has("expires") ? Units.local(vgpu.text("expires")) : "never")
            .row("labels", labels(vgpu))
            .row("sessions", sessions(vgpu))
            .row("waiting for a worker", vgpu.number("startsWaiting"))
            .row("tokens", vgpu.number("tokens")).row("origin", vgpu.text("origin"))
            .row("created", Units.local(vgpu.text("created"))).row("changed", Units.local(vgpu.text("changed")));
        if (!vgpu.text("broker").isEmpty()) {
            table.row("broker", vgpu.text("broker"));
        }
        if (vgpu.has("swap")) {
            Item swap = vgpu.item("swap");
            table.row("on the GPU", Units.size(swap.number("residentBytes")))
                .row("on the host", Units.size(swap.number("swappedBytes"))).row("swaps", swap.number("swaps"))
                .row("waited for memory", String.format(Locale.ROOT, "%.1f s", swap.number("waitedMs") / 1000.0))
                .row("memory stays because", swap.text("stays"))
                .row("wholly on the host", swap.number("deepSessions") + " sessions, "
                    + swap.number("deepSwaps") + " times")
                .row("contexts stay because", swap.text("deepStays"));
        }
        return table;
    }

    private static Table statistics(Object answer) {
        Item totals = Item.of(answer);
        return new Table("FIELD", "VALUE").row("sessions", totals.number("sessions"))
            .row("calls", totals.number("calls")).row("waits", totals.number("roundTrips"))
            .row("kernels", totals.number("kernels")).row("GPU time", seconds(totals, "gpuTimeMs"))
            .row("waited for its turn", seconds(totals, "waitedMs"))
            .row("most memory", Units.size(totals.number("peakBytes")))
            .row("from guests", Units.size(totals.number("bytesIn")))
            .row("to guests", Units.size(totals.number("bytesOut")));
    }

    private static String seconds(Item totals, String name) {
        return String.format(Locale.ROOT, "%.1f s", totals.number(name) / 1000.0);
    }

    private static String path(String name) {
        return PATH + "/" + ApiClient.segment(name);
    }

    /** {@code hawserctl vgpus list}. */
    @Command(name = "list", description = "Lists the vGPUs.")
    static final class ListCommand extends ApiCommand {
        @Option(names = "--label", paramLabel = "KEY=VALUE",
            description = "Only vGPUs that have this label; repeat it for several labels.")
        private Map<String, String> labels = Map.of();
        @Mixin
        private OneBroker broker;

        @Override
        void run(ApiClient client) {
            String query = labels.entrySet().stream().map(label -> "label=" + ApiClient.segment(label.getKey() + "="
                + label.getValue())).collect(Collectors.joining("&"));
            print(client.get(broker.query(query.isEmpty() ? PATH : PATH + "?" + query)), VgpusCommand::table);
        }
    }

    /** {@code hawserctl vgpus show}. */
    @Command(name = "show", description = "Shows one vGPU.")
    static final class ShowCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;

        @Override
        void run(ApiClient client) {
            print(client.get(path(name)), VgpusCommand::details);
        }
    }

    /** {@code hawserctl vgpus create}. */
    @Command(name = "create", sortOptions = false, description = "Makes a vGPU and reserves its memory.")
    static final class CreateCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME", description = "Letters, digits, _ . -; at most 63.")
        private String name;
        @Mixin
        private VgpuOptions options;
        @Option(names = "--if-absent", description = "Succeeds if a vGPU of this name with the same properties and "
            + "labels exists; it gets the expiry. The command can be repeated without harm.")
        private boolean ifAbsent;
        @Option(names = "--at", paramLabel = "BROKER",
            description = "The broker of the pool that must have it (the broker whose GPU suits best).")
        private String at;
        private final Map<String, Object> body = new LinkedHashMap<>();

        @Override
        void prepare() {
            body.put("name", name);
            body.putAll(options.body());
            if (at != null) {
                body.put("broker", at);
            }
        }

        @Override
        void run(ApiClient client) {
            print(client.change("POST", PATH + (ifAbsent ? "?idempotent=true" : ""), body), VgpusCommand::details);
        }
    }

    /** {@code hawserctl vgpus statistics}. */
    @Command(name = "statistics", description = "Shows the totals of a vGPU's sessions, ended ones included.")
    static final class StatisticsCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;

        @Override
        void run(ApiClient client) {
            print(client.get(path(name) + "/statistics"), VgpusCommand::statistics);
        }
    }

    /** {@code hawserctl vgpus change}. */
    @Command(name = "change", sortOptions = false,
        description = "Changes the given properties of a vGPU; its sessions continue.")
    static final class ChangeCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;
        @Mixin
        private VgpuOptions options;
        @Mixin
        private ExpectedOwner expected;
        private Map<String, Object> body;

        @Override
        void prepare() {
            body = options.body();
            if (body.isEmpty()) {
                throw new ParameterException(spec().commandLine(), "no change is given");
            }
            if (expected.id() != null) {
                body.put("expectedOwner", expected.id());
            }
        }

        @Override
        void run(ApiClient client) {
            print(client.change("PATCH", path(name), body), VgpusCommand::details);
        }
    }

    /** {@code hawserctl vgpus move}. */
    @Command(name = "move", description = "Moves a vGPU, with its running sessions, to another GPU or broker. The "
        + "programs wait meanwhile, and notice nothing else.")
    static final class MoveCommand extends MovingCommand {
        @Parameters(paramLabel = "NAME")
        private String name;
        @Mixin
        private Destination to;

        @Override
        void prepare() {
            to.check(spec().commandLine());
        }

        @Override
        void run(ApiClient client) {
            move(client, path(name), to, "moving " + name);
        }
    }

    /** {@code hawserctl vgpus rebalance}. */
    @Command(name = "rebalance", description = "Moves vGPUs, with their running sessions, to GPUs that the policy of "
        + "the placement prefers; in a pool, over all its brokers. The programs wait meanwhile, and notice nothing "
        + "else.")
    static final class RebalanceCommand extends MovingCommand {
        @Option(names = "--dry-run", description = "Shows the moves only.")
        private boolean dryRun;
        @Option(names = "--limit", paramLabel = "N", description = "Most number of moves, 1 to 1000 (1000).")
        private Integer limit;

        @Override
        void run(ApiClient client) {
            Map<String, Object> body = new LinkedHashMap<>();
            body.put("dryRun", dryRun);
            if (limit != null) {
                body.put("limit", limit);
            }
            Object answer = wait(client, "/api/v1/rebalance", body, "rebalancing");
            print(answer, RebalanceCommand::steps);
            if (Item.of(answer).items("steps").isEmpty()) {
                printDone("no move would be an improvement");
            }
        }

        private static Table steps(Object answer) {
            Table table = new Table("VGPU", "STATE", "FROM", "TO", ">SESSIONS", ">TIME", "STAYS BECAUSE");
            for (Item step : Item.of(answer).items("steps")) {
                boolean hasMoved = step.text("state").equals("moved");
                table.row(step.text("vgpu"), step.text("state"), gpu(step, "from"), gpu(step, "to"),
                    hasMoved ? step.number("sessions") : "", hasMoved ? time(step) : "", step.text("reason"));
            }
            return table;
        }

        private static String gpu(Item step, String end) {
            return (step.text(end + "Broker") + " " + step.text(end)).strip();
        }
    }

    /** {@code hawserctl vgpus delete}. */
    @Command(name = "delete", description = "Deletes a vGPU and its tokens.")
    static final class DeleteCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;
        @Option(names = "--force", description = "Ends its sessions and regions first.")
        private boolean force;
        @Mixin
        private ExpectedOwner expected;
        @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
        private boolean yes;

        @Override
        void run(ApiClient client) {
            confirm(yes, "Delete the vGPU " + name + " and its tokens" + (force ? ", and end its sessions" : "") + "?");
            client.change("DELETE", path(name) + "?force=" + force + expected.query(), null);
            printDone("deleted: " + name);
        }
    }
}
