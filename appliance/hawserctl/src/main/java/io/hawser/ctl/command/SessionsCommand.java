package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.client.Units;
import io.hawser.ctl.terminal.BrokerColumn;
import io.hawser.ctl.terminal.Table;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl sessions}; lists the sessions without a subcommand. */
@Command(name = "sessions", description = "Lists, shows, moves and ends sessions.",
    synopsisSubcommandLabel = "[COMMAND]",
    subcommands = {SessionsCommand.ListCommand.class, SessionsCommand.ShowCommand.class,
        SessionsCommand.MoveCommand.class, SessionsCommand.EndCommand.class})
public final class SessionsCommand extends ApiCommand {
    private static final String PATH = "/api/v1/sessions";

    @Override
    void run(ApiClient client) {
        print(client.get(PATH), SessionsCommand::table);
    }

    private static Table table(Object answer) {
        Table table = new Table(">ID", "VGPU", "STATE", "CARRIER", "PROGRAM", "HOST", ">PID", "PEER", ">AGE", ">MEMORY",
            ">CALLS", ">WAITS", ">KERNELS");
        for (Item session : Item.list(answer)) {
            Item totals = session.item("statistics");
            table.row(session.number("id"), session.text("vgpu"), session.text("state"), session.text("carrier"),
                session.text("program"), session.text("host"), session.number("guestPid"), session.text("peer"),
                Units.age(session.text("started"), Instant.now()), Units.size(totals.number("deviceBytes")),
                Units.count(totals.number("calls")), Units.count(totals.number("roundTrips")),
                Units.count(totals.number("kernels")));
        }
        return BrokerColumn.add(table, Item.list(answer));
    }

    private static Table details(Object answer) {
        Item session = Item.of(answer);
        Table table = new Table("FIELD", "VALUE");
        for (Map.Entry<?, ?> field : session.fields().entrySet()) {
            String name = field.getKey().toString();
            if (!name.equals("statistics")) {
                table.row(name, name.equals("started") ? Units.local(session.text(name)) : name.equals("memoryBytes")
                    ? VgpusCommand.quota(session) : session.text(name));
            }
        }
        session.item("statistics").fields().forEach((name, value) -> table.row(name, name.equals("deviceBytes")
            || name.equals("bytesIn") || name.equals("bytesOut") ? Units.size(((Number) value).longValue()) : value));
        return table;
    }

    /** {@code hawserctl sessions list}. */
    @Command(name = "list", description = "Lists the sessions, oldest first.")
    static final class ListCommand extends ApiCommand {
        @Option(names = "--vgpu", paramLabel = "NAME", description = "Only the sessions of this vGPU.")
        private String vgpu;
        @Mixin
        private OneBroker broker;

        @Override
        void run(ApiClient client) {
            Object all = client.get(broker.query(PATH));
            print(vgpu == null ? all : Item.list(all).stream().filter(s -> s.text("vgpu").equals(vgpu))
                .map(Item::fields).toList(), SessionsCommand::table);
        }
    }

    /** {@code hawserctl sessions show}. */
    @Command(name = "show", description = "Shows one session.")
    static final class ShowCommand extends ApiCommand {
        @Parameters(paramLabel = "ID")
        private long id;

        @Override
        void run(ApiClient client) {
            print(client.get(PATH + "/" + id), SessionsCommand::details);
        }
    }

    /** {@code hawserctl sessions move}. */
    @Command(name = "move",
        description = "Moves a session's vGPU, with all its sessions, to another GPU or broker. "
            + "The programs wait meanwhile, and notice nothing else.")
    static final class MoveCommand extends MovingCommand {
        @Parameters(paramLabel = "ID")
        private long id;
        @Mixin
        private Destination to;

        @Override
        void prepare() {
            to.check(spec().commandLine());
        }

        @Override
        void run(ApiClient client) {
            move(client, PATH + "/" + id, to, "moving the vGPU of session " + id);
        }
    }

    /** {@code hawserctl sessions end}. */
    @Command(name = "end",
        description = "Ends sessions; their programs' next CUDA calls fail as if the device were lost.")
    static final class EndCommand extends ApiCommand {
        @Parameters(paramLabel = "ID", arity = "1..*")
        private List<Long> ids;
        @Option(names = {"-y", "--yes"}, description = "Does not ask for confirmation.")
        private boolean yes;

        @Override
        void run(ApiClient client) {
            confirm(yes, "End " + (ids.size() == 1 ? "the session " : "the sessions ") + Json.line(List.copyOf(ids))
                .replaceAll("[\\[\\]]", "") + "?");
            ClientException failure = null;
            for (long id : ids) {
                try {
                    client.change("DELETE", PATH + "/" + id, null);
                    printDone("ended: " + id);
                } catch (ClientException e) {
                    // The other sessions are ended all the same.
                    spec().commandLine().getErr().println("hawserctl: " + e.getMessage());
                    failure = e;
                }
            }
            if (failure != null) {
                throw new ClientException(failure.failure(), "not every session was ended");
            }
        }
    }
}
