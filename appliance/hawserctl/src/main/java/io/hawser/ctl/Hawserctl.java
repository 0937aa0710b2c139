package io.hawser.ctl;

import io.hawser.client.ClientException;
import io.hawser.ctl.command.AttachCommand;
import io.hawser.ctl.command.AuditCommand;
import io.hawser.ctl.command.BrokerCommand;
import io.hawser.ctl.command.BrokersCommand;
import io.hawser.ctl.command.CdiCommand;
import io.hawser.ctl.command.CompletionCommand;
import io.hawser.ctl.command.DetachCommand;
import io.hawser.ctl.command.DomainsCommand;
import io.hawser.ctl.command.EventsCommand;
import io.hawser.ctl.command.ExitCode;
import io.hawser.ctl.command.GlobalOptions;
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
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command line. */
@Command(name = "hawserctl", description = "Administers a Hawser broker, and the vGPUs of"
    + " this host's virtual machines.",
    subcommands = {BrokerCommand.class, BrokersCommand.class, GpusCommand.class, VgpusCommand.class,
        TokensCommand.class, SessionsCommand.class, RegionsCommand.class, EventsCommand.class, AuditCommand.class,
        TopCommand.class, AttachCommand.class, DetachCommand.class, PrepareCommand.class, DomainsCommand.class,
        CdiCommand.class, LoginCommand.class, LogoutCommand.class, WhoCommand.class, CompletionCommand.class},
    versionProvider = Hawserctl.Version.class, sortOptions = false, synopsisSubcommandLabel = "COMMAND",
    footer = {"", "On the broker's own machine no option is needed: its state folder holds its address and the admin"
        + " token. Each option can be given as a variable (HAWSERCTL_URL) or a line of"
        + " ~/.config/hawser/ctl.toml (url = \"...\").", "",
        "Exit codes: 0 done, 1 refused or failed, 2 wrong command line, 3 no broker answers, 4 not allowed,"
            + " 5 no such object, 6 another owner than expected."})
public final class Hawserctl extends GlobalOptions implements Runnable {
    @Spec
    private CommandSpec spec;
    @Option(names = {"-V", "--version"}, versionHelp = true, description = "Prints the version.")
    @SuppressWarnings("unused") // picocli sets and reads it
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
        CdiCommand.useOwnUser(line);
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
                + " --help)",
            ExitCode.USAGE));
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
}
