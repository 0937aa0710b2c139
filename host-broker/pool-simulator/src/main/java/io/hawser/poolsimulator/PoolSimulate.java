package io.hawser.poolsimulator;

import java.io.IOException;
import java.io.PrintWriter;
import java.sql.SQLException;
import java.util.logging.Level;
import java.util.logging.Logger;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command line. */
@Command(name = "simulate", subcommands = {PoolCommand.class, DatabaseCommand.class}, mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND", description = "Simulates pools of brokers.")
public final class PoolSimulate implements Runnable {
    @Spec
    private CommandSpec spec;

    public static void main(String[] args) {
        System.setProperty("java.util.logging.manager", "org.jboss.logmanager.LogManager"); // before the first logger
        Logger.getLogger("").setLevel(Level.WARNING); // a broker writes a line for each placement
        System.exit(commandLine().execute(args));
    }

    /** The command line; it reports each failure in one line. */
    static CommandLine commandLine() {
        CommandLine line = new CommandLine(new PoolSimulate());
        line.setUsageHelpAutoWidth(true);
        line.setExecutionExceptionHandler((failure, command, result) -> {
            if (failure instanceof ParameterException usage) {
                return fail(command.getErr(), usage.getMessage() + " (see --help)", 2);
            } else if (failure instanceof IOException || failure instanceof SQLException) {
                return fail(command.getErr(), failure.toString(), 1);
            }
            throw failure;
        });
        line.setParameterExceptionHandler((failure, args) -> fail(failure.getCommandLine().getErr(),
            failure.getMessage() + " (see --help)", 2));
        return line;
    }

    private static int fail(PrintWriter err, String message, int exitCode) {
        err.println("simulate: " + message);
        err.flush();
        return exitCode;
    }

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "a command is missing: pool or pool-database");
    }
}
