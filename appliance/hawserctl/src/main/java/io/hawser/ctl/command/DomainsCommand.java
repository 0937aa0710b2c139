package io.hawser.ctl.command;

import io.hawser.client.DaemonClient;
import io.hawser.client.Item;
import io.hawser.client.Json;
import picocli.CommandLine.Command;

/** {@code hawserctl domains}. */
@Command(name = "domains", description = "Lists this host's domains that have a vGPU or ask for one.")
public final class DomainsCommand extends DomainCommand {
    @Override
    void run(DaemonClient daemon) {
        Object answer = daemon.get("/v1/domains");
        if (json()) {
            out().println(Json.pretty(answer));
        } else {
            table(Item.list(answer)).lines().forEach(out()::println);
        }
    }
}
