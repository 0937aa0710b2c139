package io.hawser.ctl.command;

import io.hawser.ctl.ApiClient;
import io.hawser.ctl.CtlException;
import io.hawser.ctl.Endpoint;
import io.hawser.ctl.ExitCode;
import io.hawser.ctl.Hawserctl;
import io.hawser.ctl.Json;
import io.hawser.ctl.Settings;
import io.hawser.ctl.Table;
import io.hawser.ctl.Terminal;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.concurrent.Callable;
import java.util.function.Function;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** A command that asks a broker. */
abstract class ApiCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    /** Does it; what goes wrong is a {@link CtlException}. */
    abstract void run(ApiClient client);

    /** Looks at what was given, before a broker is looked for. */
    void prepare() {
    }

    @Override
    public Integer call() {
        prepare();
        try (ApiClient client = new ApiClient(warned(endpoint(root().settings())))) {
            run(client);
            out().flush();
            return ExitCode.OK;
        }
    }

    /** Where to ask, and as whom. */
    Endpoint endpoint(Settings settings) {
        return settings.endpoint();
    }

    /** Says it when a secret goes over a network as it is. */
    final Endpoint warned(Endpoint endpoint) {
        if ("http".equals(endpoint.url().getScheme()) && !endpoint.headers().isEmpty()) {
            try {
                InetAddress address = InetAddress.getByName(endpoint.url().getHost());
                if (!address.isLoopbackAddress() && !address.isAnyLocalAddress()) {
                    spec.commandLine().getErr().println("hawserctl: warning: without TLS everybody on the way to "
                        + endpoint.url() + " can read who asks");
                }
            } catch (UnknownHostException e) {
                throw new CtlException(ExitCode.NOT_REACHABLE, "no broker answers at " + endpoint.url()
                    + ": there is no such host");
            }
        }
        return endpoint;
    }

    final Hawserctl root() {
        return (Hawserctl) spec.root().userObject();
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

    /** Prints an answer, as it is or for people. */
    final void print(Object answer, Function<Object, Table> table) {
        if (json()) {
            out().println(Json.pretty(answer));
        } else {
            table.apply(answer).lines().forEach(out()::println);
        }
    }

    /** Prints what was done, where people read. */
    final void say(String text) {
        if (!json()) {
            out().println(text);
        }
    }

    /** Goes on only when nobody is asked, or somebody says yes. */
    final void confirm(boolean yes, String question) {
        if (!yes && Terminal.isInteractive() && !Terminal.confirm(out(), question)) {
            throw new CtlException(ExitCode.REFUSED, "nothing was done");
        }
    }
}
