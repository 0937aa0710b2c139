package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.Item;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.Table;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl brokers}; lists the brokers of the pool without a subcommand. */
@Command(name = "brokers", description = "Lists and drains the brokers of the pool, and removes lost ones.",
    synopsisSubcommandLabel = "[COMMAND]",
    subcommands = {BrokersCommand.ListCommand.class, BrokersCommand.DrainCommand.class,
        BrokersCommand.UndrainCommand.class, BrokersCommand.RemoveCommand.class})
public final class BrokersCommand extends ApiCommand {
    private static final String PATH = "/api/v1/brokers";

    @Override
    void run(ApiClient client) {
        list(this, client);
    }

    private static void list(ApiCommand command, ApiClient client) {
        Object answer = client.get(PATH);
        if (answer instanceof List<?> list && list.isEmpty() && !command.json()) {
            command.printDone("this broker is alone: it is in no pool");
        } else {
            command.print(answer, BrokersCommand::table);
        }
    }

    private static Table table(Object answer) {
        Table table = new Table("BROKER", "STATE", ">GPUS", ">MEMORY", ">VGPUS", "GUESTS", "VERSION");
        for (Item broker : Item.list(answer)) {
            boolean isSelf = Boolean.TRUE.equals(broker.fields().get("self"));
            table.row(broker.text("name") + (isSelf ? " (this one)" : ""), state(broker), broker.number("gpus"),
                Units.size(broker.number("totalBytes")), broker.number("vgpus"), guests(broker),
                broker.text("version"));
        }
        return table;
    }

    private static String state(Item broker) {
        String state = broker.text("state");
        return state.equals("silent") ? state + " for " + broker.number("silentMs") / 1000 + "s" : state;
    }

    /** The broker's addresses as guests name them. */
    private static String guests(Item broker) {
        String tls = broker.text("guestTlsEndpoint");
        return Stream.of(broker.text("guestEndpoint"), tls.isEmpty() ? "" : "tls://" + tls)
            .filter(address -> !address.isEmpty()).collect(Collectors.joining(","));
    }

    /** {@code hawserctl brokers list}. */
    @Command(name = "list", description = "Lists the brokers of the pool.")
    static final class ListCommand extends ApiCommand {
        @Override
        void run(ApiClient client) {
            list(this, client);
        }
    }

    /** {@code hawserctl brokers drain}. */
    @Command(name = "drain", description = "Places no further vGPU on a broker's GPUs, and moves its vGPUs with their "
        + "sessions to other brokers. Fails if a vGPU stays.")
    static final class DrainCommand extends MovingCommand {
        @Parameters(paramLabel = "NAME")
        private String name;

        @Override
        void run(ApiClient client) {
            drain(client, path(name), "broker", "draining broker " + name);
        }
    }

    /** {@code hawserctl brokers undrain}. */
    @Command(name = "undrain", description = "Allows vGPUs on a broker's GPUs again.")
    static final class UndrainCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;

        @Override
        void run(ApiClient client) {
            print(client.change("POST", path(name) + "/undrain", null), answer -> new Table("FIELD", "VALUE")
                .row("broker", Item.of(answer).text("broker")).row("drained", Item.of(answer).text("drained")));
        }
    }

    private static String path(String name) {
        return PATH + "/" + ApiClient.segment(name);
    }

    /** {@code hawserctl brokers remove}. */
    @Command(name = "remove", description = "Removes a silent broker that will not come back. Other brokers take its "
        + "vGPUs, also those in use. Needs the role admin.")
    static final class RemoveCommand extends ApiCommand {
        @Parameters(paramLabel = "NAME")
        private String name;
        @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
        private boolean yes;

        @Override
        void run(ApiClient client) {
            confirm(yes, "Remove the broker " + name + " from the pool, and give its vGPUs to other brokers?");
            client.change("DELETE", path(name), null);
            printDone("removed: " + name);
        }
    }
}
