package io.hawser.ctl.command;

import io.hawser.ctl.DaemonClient;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl prepare}. */
@Command(name = "prepare", sortOptions = false, description = "Puts into a domain's definition what it takes to attach"
    + " a vGPU while it runs, from its next start on.")
public final class PrepareCommand extends DomainCommand {
    @Parameters(paramLabel = "DOMAIN", description = "Its name or UUID.")
    private String domain;
    @Option(names = "--region", paramLabel = "SIZE", defaultValue = "64M",
        description = "The largest region that shall be attached (64M).")
    private String region;

    @Override
    void run(DaemonClient daemon) {
        print(daemon.post(path(domain, "prepare"), Map.of("region", region), this::progress));
    }
}
