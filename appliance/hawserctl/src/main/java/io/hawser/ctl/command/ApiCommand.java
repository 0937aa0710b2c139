package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Endpoint;
import io.hawser.client.Failure;
import io.hawser.client.Item;
import io.hawser.client.Json;
import io.hawser.client.Settings;
import io.hawser.client.Text;
import io.hawser.ctl.terminal.Table;
import io.hawser.ctl.terminal.Terminal;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command that uses a broker's REST interface. */
abstract class ApiCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    /** Runs the command; a failure is a {@link ClientException}. */
    abstract void run(ApiClient client);

    /** Checks the arguments, before the search for a broker. */
    void prepare() {
    }

    @Override
    public Integer call() {
        prepare();
        try (ApiClient client = connect(warned(endpoint(root().settings())))) {
            run(client);
            out().flush();
            return ExitCode.OK;
        }
    }

    /** The client for a broker; it connects at the first request. */
    ApiClient connect(Endpoint endpoint) {
        return new ApiClient(endpoint);
    }

    /** The broker's address and the credentials. */
    Endpoint endpoint(Settings settings) {
        return settings.endpoint();
    }

    /** Warns if a secret goes over a network without TLS. */
    final Endpoint warned(Endpoint endpoint) {
        if ("http".equals(endpoint.url().getScheme()) && !endpoint.headers().isEmpty()) {
            try {
                InetAddress address = InetAddress.getByName(endpoint.url().getHost());
                if (!address.isLoopbackAddress() && !address.isAnyLocalAddress()) {
                    spec.commandLine().getErr().println("hawserctl: warning: without TLS the network can read the "
                        + "credentials for " + endpoint.url() + "");
                }
            } catch (UnknownHostException e) {
                throw new ClientException(Failure.NOT_REACHABLE, "no broker answers at " + endpoint.url()
                    + ": there is no such host");
            }
        }
        return endpoint;
    }

    final GlobalOptions root() {
        return GlobalOptions.of(spec);
    }

    final CommandSpec spec() {
        return spec;
    }

    final PrintWriter out() {
        return spec.commandLine().getOut();
    }

    final boolean json() {
        return root().json();
    }

    /** Prints an answer: its fields, as JSON or as a table. */
    final void print(Object answer, Function<Object, Table> table) {
        if (root().fields() != null) {
            (answer instanceof List<?> ? Item.list(answer) : List.of(Item.of(answer))).forEach(item -> out().println(
                root().fields().stream().map(name -> Text.printable(item.path(name))).collect(
                    Collectors.joining("\t"))));
        } else if (json()) {
            out().println(Json.pretty(answer));
        } else {
            table.apply(answer).lines().forEach(out()::println);
        }
    }

    /** Prints a completed action, unless the output is for a program. */
    final void printDone(String text) {
        if (!json() && root().fields() == null) {
            out().println(text);
        }
    }

    /** Asks for confirmation on a terminal; fails unless the user confirms. */
    final void confirm(boolean yes, String question) {
        if (!yes && Terminal.isInteractive() && !Terminal.confirm(out(), question)) {
            throw new ClientException(Failure.REFUSED, "nothing was done");
        }
    }
}
