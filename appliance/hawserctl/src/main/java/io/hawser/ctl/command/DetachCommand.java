package io.hawser.ctl.command;

import io.hawser.client.DaemonClient;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code hawserctl detach}. */
@Command(name = "detach", sortOptions = false,
    description = "Removes a domain's vGPU. Fails while the guest has sessions on it.")
public final class DetachCommand extends DomainCommand {
    @Parameters(paramLabel = "DOMAIN", description = "Its name or UUID.")
    private String domain;
    @Option(names = "--force", description = "Ends the guest's sessions first.")
    private boolean force;
    @Mixin
    private Scope scope;
    @Option(names = "--timeout", paramLabel = "SECONDS", defaultValue = "30",
        description = "Time limit for the guest to give the device back (30).")
    private int timeout;

    @Override
    void run(DaemonClient daemon) {
        Map<String, Object> body = new LinkedHashMap<>(Map.of("force", force, "timeoutS", seconds(timeout)));
        scope.put(body);
        print(daemon.post(path(domain, "detach"), body, this::progress));
    }
}
