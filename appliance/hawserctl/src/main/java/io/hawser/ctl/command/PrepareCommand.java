package io.hawser.ctl.command;

import io.hawser.client.DaemonClient;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl prepare}. */
@Command(name = "prepare", sortOptions = false, description = "Changes a domain's definition so that, from its next"
    + " start on, a vGPU can be attached while it runs.")
public final class PrepareCommand extends DomainCommand {
    @Parameters(paramLabel = "DOMAIN", description = "Its name or UUID.")
    private String domain;
    @Option(names = "--region", paramLabel = "SIZE", defaultValue = "64M",
        description = "The size of the largest region to attach later (64M).")
    private String region;

    @Override
    void run(DaemonClient daemon) {
        print(daemon.post(path(domain, "prepare"), Map.of("region", region), this::progress));
    }
}
