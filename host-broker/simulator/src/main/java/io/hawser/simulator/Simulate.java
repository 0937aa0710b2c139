package io.hawser.simulator;

import io.hawser.turns.RecordingException;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.io.PrintWriter;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The command line. */
@Command(name = "simulate", subcommands = {RunCommand.class, ReplayCommand.class}, mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "COMMAND", description = "Runs the broker's scheduler of turns against generated or"
        + " recorded loads, in simulated time.",
    footer = {"", "Further commands, of pools of brokers: pool --help, pool-database --help.", "",
        "Exit codes: 0 done, 1 failed or a decision differs, 2 wrong command line."})
public final class Simulate implements Runnable {
    /** The defaults of a broker's settings. */
    static final TurnRules DEFAULT_RULES = new TurnRules(4_000_000, 20_000_000, 100_000);

    @Spec
    private CommandSpec spec;

    public static void main(String[] args) {
        System.exit(commandLine().execute(args));
    }

    /** The command line; it reports each failure in one line. */
    static CommandLine commandLine() {
        CommandLine line = new CommandLine(new Simulate());
        line.setUsageHelpAutoWidth(true);
        line.setExecutionExceptionHandler((failure, command, result) -> {
            if (failure instanceof ParameterException usage) {
                return fail(command.getErr(), usage.getMessage() + " (see --help)", 2);
            } else if (failure instanceof IOException || failure instanceof RecordingException) {
                return fail(command.getErr(), failure instanceof RecordingException ? failure.getMessage()
                    : failure.toString(), 1);
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
        throw new ParameterException(spec.commandLine(), "a command is missing: run or replay");
    }
}
