package io.hawser.poolsimulator;

import io.hawser.poolsimulator.database.Access;
import io.hawser.poolsimulator.database.DatabaseRun;
import io.hawser.poolsimulator.load.Mix;
import io.hawser.simulator.engine.Durations;
import io.hawser.simulator.report.TextTable;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.sql.SQLException;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code simulate pool-database}. */
@Command(name = "pool-database", sortOptions = false, mixinStandardHelpOptions = true,
    description = "Runs brokers without guests against an empty PostgreSQL database, and creates vGPUs at a wished"
        + " rate. HAWSER_DATABASE_PASSWORD is the password.",
    footer = {"", "Each broker takes four connections and one for notifications.", "",
        "Exit codes: 0 done, 1 failed or more was reserved than a GPU has, 2 wrong command line."})
final class DatabaseCommand implements Callable<Integer> {
    private static final int MAX_BROKERS = 200; // each has threads and five connections
    private static final long MIB = 1 << 20;

    @Parameters(paramLabel = "URL", description = "The database: jdbc:postgresql://HOST:PORT/NAME. It must be empty.")
    private String url;

    @Option(names = "--user", paramLabel = "NAME", defaultValue = "hawser", description = "Its user"
        + " (${DEFAULT-VALUE}).")
    private String user;

    @Option(names = "--brokers", paramLabel = "N", defaultValue = "50", description = "Brokers (${DEFAULT-VALUE}).")
    private int brokers;

    @Option(names = "--gpus", paramLabel = "N", defaultValue = "8", description = "GPUs of each broker"
        + " (${DEFAULT-VALUE}).")
    private int gpus;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "500", description = "Creates a second"
        + " (${DEFAULT-VALUE}).")
    private double rate;

    @Option(names = "--seconds", paramLabel = "S", defaultValue = "20", description = "Time in which they are sent"
        + " (${DEFAULT-VALUE}).")
    private int seconds;

    @Option(names = "--size", paramLabel = "SIZE", defaultValue = "1g", description = "Memory of each vGPU"
        + " (${DEFAULT-VALUE}).")
    private String size;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, SQLException {
        DatabaseRun.Wish wish;
        try {
            if (!url.startsWith("jdbc:postgresql:")) {
                throw new IllegalArgumentException("the database must be jdbc:postgresql://HOST:PORT/NAME: " + url);
            }
            if (brokers < 1 || brokers > MAX_BROKERS || gpus < 1 || !(rate > 0) || seconds < 1) {
                throw new IllegalArgumentException("there must be 1 to " + MAX_BROKERS + " brokers, and GPUs, rate and "
                    + "seconds over 0");
            }
            wish = new DatabaseRun.Wish(rate, seconds, Mix.sizes(size).least() * MIB);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage());
        }
        String password = System.getenv("HAWSER_DATABASE_PASSWORD");
        Access access = new Access(url, user, password == null ? "" : password);
        access.requireEmpty();
        PrintWriter out = spec.commandLine().getOut();
        DatabaseRun.Costs costs = DatabaseRun.costs(access);
        Path folder = Files.createTempDirectory("hawser-simulate");
        DatabaseRun.Result result;
        try (DatabaseRun run = new DatabaseRun(access, brokers, gpus, folder)) {
            out.println(brokers + " brokers, " + run.gpus() + " GPUs; a round trip " + Durations.format(
                costs.roundTrip()) + ", a commit to the disk " + Durations.format(costs.commit()));
            out.flush();
            result = run.run(wish);
        } finally {
            delete(folder);
        }
        print(out, result);
        out.flush();
        return result.overReserved() > 0 ? 1 : 0;
    }

    private void print(PrintWriter out, DatabaseRun.Result result) {
        TextTable table = new TextTable("wished/s", "created/s", "created", "refused", "answer p50", "p99", "max",
            "all transactions/s");
        table.row(String.format(Locale.ROOT, "%.0f", rate), String.format(Locale.ROOT, "%.0f", result.rate()),
            String.valueOf(result.created()), String.valueOf(result.refused()),
            Durations.format(result.answers().getValueAtPercentile(50)),
            Durations.format(result.answers().getValueAtPercentile(99)),
            Durations.format(result.answers().getMaxValue()),
            String.format(Locale.ROOT, "%.0f", result.commits() / result.seconds()));
        out.print(table);
        TextTable parts = new TextTable("part of the time", "");
        for (DatabaseRun.Part part : result.parts()) {
            parts.row(part.name(), percent(part.part()));
        }
        parts.row("processors: the brokers", percent(result.processorPart()));
        parts.row("processors: the whole machine", percent(result.machinePart()));
        out.print(parts);
        if (!result.refusal().isEmpty()) {
            out.println("first refusal: " + result.refusal());
        }
        out.println("over-reserved GPUs: " + result.overReserved());
    }

    private static String percent(double part) {
        return String.format(Locale.ROOT, "%.1f %%", 100 * part);
    }

    private static void delete(Path folder) throws IOException {
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                Files.delete(file);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(Path directory, IOException failure) throws IOException {
                Files.delete(directory);
                return FileVisitResult.CONTINUE;
            }
        });
    }
}
