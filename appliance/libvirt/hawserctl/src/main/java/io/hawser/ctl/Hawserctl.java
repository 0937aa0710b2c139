package io.hawser.ctl;

import io.hawser.client.ClientException;
import io.hawser.client.Settings;
import io.hawser.ctl.command.AttachCommand;
import io.hawser.ctl.command.AuditCommand;
import io.hawser.ctl.command.BrokerCommand;
import io.hawser.ctl.command.CompletionCommand;
import io.hawser.ctl.command.DetachCommand;
import io.hawser.ctl.command.DomainsCommand;
import io.hawser.ctl.command.EventsCommand;
import io.hawser.ctl.command.GpusCommand;
import io.hawser.ctl.command.LoginCommand;
import io.hawser.ctl.command.LogoutCommand;
import io.hawser.ctl.command.PrepareCommand;
import io.hawser.ctl.command.RegionsCommand;
import io.hawser.ctl.command.SessionsCommand;
import io.hawser.ctl.command.TokensCommand;
import io.hawser.ctl.command.TopCommand;
import io.hawser.ctl.command.VgpusCommand;
import io.hawser.ctl.command.WhoCommand;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The command line. */
@Command(name = "hawserctl", description = "Administers a Hawser broker, and the vGPUs of"
    + " this host's virtual machines.",
    subcommands = {BrokerCommand.class, GpusCommand.class, VgpusCommand.class, TokensCommand.class,
        SessionsCommand.class, RegionsCommand.class, EventsCommand.class, AuditCommand.class, TopCommand.class,
        AttachCommand.class, DetachCommand.class, PrepareCommand.class, DomainsCommand.class, LoginCommand.class,
        LogoutCommand.class, WhoCommand.class, CompletionCommand.class},
    versionProvider = Hawserctl.Version.class, sortOptions = false, synopsisSubcommandLabel = "COMMAND",
    footer = {"", "On the broker's own machine no option is needed: its state folder holds its address and the admin"
        + " token. Each option can be given as a variable (HAWSERCTL_URL) or a line of"
        + " ~/.config/hawser/ctl.toml (url = \"...\").", "",
        "Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 no broker answers, 4 not allowed,"
            + " 5 no such object, 6 another owner than expected."})
public final class Hawserctl implements Runnable {
    @Spec
    private CommandSpec spec;
    @Option(names = "--url", paramLabel = "URL", scope = ScopeType.INHERIT,
        description = "The broker: https://host:7655.")
    private String url;
    @Option(names = "--token-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "A file with the admin token, or a token of OIDC.")
    private String tokenFile;
    @Option(names = "--user", paramLabel = "NAME", scope = ScopeType.INHERIT,
        description = "A user of the broker; asks for the password.")
    private String user;
    @Option(names = "--password-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "A file with that user's password.")
    private String passwordFile;
    @Option(names = "--ca-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "Certificates (PEM) to trust under TLS.")
    private String caFile;
    @Option(names = "--state-dir", paramLabel = "DIR", scope = ScopeType.INHERIT,
        description = "State folder of a broker on this machine.")
    private String stateDir;
    @Option(names = "--config-file", paramLabel = "FILE", scope = ScopeType.INHERIT,
        description = "Reads this file instead of ~/.config/hawser/ctl.toml.")
    private String config;
    @Option(names = "--json", scope = ScopeType.INHERIT,
        description = "Prints JSON in the format of the broker's REST interface.")
    private boolean json;
    @Option(names = {"-h", "--help"}, usageHelp = true, scope = ScopeType.INHERIT, description = "Shows this help.")
    private boolean help;
    @Option(names = {"-V", "--version"}, versionHelp = true, description = "Prints the version.")
    private boolean version;

    /** The distribution's version; the launcher passes it. */
    static final class Version implements CommandLine.IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"hawserctl " + System.getProperty("hawserctl.version", "(source tree)")};
        }
    }

    public static void main(String[] args) {
        System.exit(commandLine().execute(args));
    }

    /** The command line; it reports each failure in one line. */
    public static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Hawserctl());
        line.setUsageHelpAutoWidth(true);
        line.setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler((failure, command, result) -> {
            if (failure instanceof ClientException known) {
                return fail(command.getErr(), known.getMessage(), ExitCode.of(known.failure()));
            } else if (failure instanceof ParameterException usage) {
                return fail(command.getErr(), usage.getMessage() + " (see " + command.getCommandSpec()
                    .qualifiedName(" ") + " --help)", ExitCode.USAGE);
            }
            throw failure;
        });
        line.setParameterExceptionHandler((failure, args) -> fail(failure.getCommandLine().getErr(),
            failure.getMessage() + " (see " + failure.getCommandLine().getCommandSpec().qualifiedName(" ")
                + " --help)", ExitCode.USAGE));
        return line;
    }

    private static int fail(PrintWriter err, String message, int exitCode) {
        err.println("hawserctl: " + message);
        err.flush();
        return exitCode;
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "a command is missing");
    }

    /** Whether the output is JSON. */
    public boolean json() {
        return json;
    }

    /** The settings that choose broker and credentials. */
    public Settings settings() {
        Map<String, String> options = new HashMap<>();
        put(options, "url", url);
        put(options, "token-file", tokenFile);
        put(options, "user", user);
        put(options, "password-file", passwordFile);
        put(options, "ca-file", caFile);
        put(options, "state-dir", stateDir);
        put(options, "config", config);
        return new Settings(options, System.getenv(),
            Path.of(System.getenv().getOrDefault("HOME", System.getProperty("user.home"))), Terminal::password);
    }

    /** The user of the command line; null if it names none. */
    public String user() {
        return user;
    }

    /** The password file of the command line; null if it names none. */
    public String passwordFile() {
        return passwordFile;
    }

    private static void put(Map<String, String> options, String name, String value) {
        if (value != null) {
            options.put(name, value);
        }
    }
}
