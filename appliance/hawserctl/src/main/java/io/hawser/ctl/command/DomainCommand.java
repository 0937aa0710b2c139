package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.DaemonClient;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.client.Text;
import io.hawser.ctl.terminal.Table;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** A command that uses hawserd on this machine. */
abstract class DomainCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;
    @Option(names = "--socket", paramLabel = "SOCKET", defaultValue = "${env:HAWSERCTL_SOCKET:-" + DaemonClient.SOCKET
        + "}", description = "The socket of hawserd (" + DaemonClient.SOCKET + ").")
    private Path socket;

    abstract void run(DaemonClient daemon);

    @Override
    public Integer call() {
        run(new DaemonClient(socket));
        spec.commandLine().getOut().flush();
        return ExitCode.OK;
    }

    final CommandSpec spec() {
        return spec;
    }

    final PrintWriter out() {
        return spec.commandLine().getOut();
    }

    final boolean json() {
        return GlobalOptions.of(spec).json();
    }

    static String path(String domain, String what) {
        return "/v1/domains/" + ApiClient.segment(domain) + "/" + what;
    }

    /** Prints a stage on stderr, so that stdout contains only the answer. */
    final void progress(String text) {
        spec.commandLine().getErr().println(Text.printable(text));
        spec.commandLine().getErr().flush();
    }

    /** The target of a change; by default both, if the domain has both. */
    static final class Scope {
        @Option(names = "--live", description = "Only the running domain.")
        private boolean live;
        @Option(names = "--config", description = "Only the definition, for the next start.")
        private boolean config;

        /** Adds the chosen target to a request. */
        void put(java.util.Map<String, Object> body) {
            if (live || config) {
                body.put("live", live);
                body.put("config", config);
            }
        }
    }

    /** Checks a timeout's range. */
    final int seconds(int timeout) {
        if (timeout < 1 || timeout > 600) {
            throw new ParameterException(spec.commandLine(), "--timeout must be 1 to 600 seconds: " + timeout);
        }
        return timeout;
    }

    /** Prints a domain's present state, and notes on it. */
    final void print(Object answer) {
        if (json()) {
            out().println(Json.pretty(answer));
            return;
        }
        table(List.of(Item.of(answer))).lines().forEach(out()::println);
        if (Item.of(answer).fields().get("notes") instanceof List<?> notes) {
            notes.forEach(note -> out().println(Text.printable(String.valueOf(note))));
        }
    }

    static Table table(List<Item> domains) {
        Table table = new Table("DOMAIN", "STATE", "VGPU", "TRANSPORT", "STATUS", ">SESSIONS", "REASON");
        for (Item domain : domains) {
            table.row(domain.text("domain"), domain.text("state"), or(domain.text("vgpu")),
                or(domain.text("transport")), domain.text("status"), domain.number("sessions"), domain.text("reason"));
        }
        return table;
    }

    private static String or(String text) {
        return text.isEmpty() ? "-" : text;
    }
}
