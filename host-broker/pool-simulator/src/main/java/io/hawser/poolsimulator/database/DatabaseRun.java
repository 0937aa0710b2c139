package io.hawser.poolsimulator.database;

import com.sun.management.OperatingSystemMXBean;
import io.hawser.broker.model.VgpuView;
import io.hawser.broker.store.DatabaseException;
import io.netty.channel.DefaultEventLoopGroup;
import io.netty.channel.EventLoopGroup;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** Creates vGPUs at several brokers of one database, at a wished rate. */
public final class DatabaseRun implements AutoCloseable {
    private static final int DIGITS = 3;
    private static final int PROBES = 200;
    private static final long START_LIMIT_NS = TimeUnit.SECONDS.toNanos(120);

    private final Access access;
    private final EventLoopGroup loops;
    private final List<DatabaseBroker> brokers = new ArrayList<>();
    private final int gpus;

    /**
     * The wish.
     *
     * @param rate creates a second.
     * @param seconds length.
     * @param memoryBytes of each vGPU.
     */
    public record Wish(double rate, int seconds, long memoryBytes) {}

    /**
     * The result.
     *
     * @param created vGPUs.
     * @param refused creates that failed.
     * @param refusal the first reason; empty for none.
     * @param seconds until the last answer.
     * @param answers times until the answers, in nanoseconds.
     * @param commits all transactions of the database in that time.
     * @param processorPart part of the machine's processors that this process used, 0 to 1.
     * @param machinePart part of the machine's processors that all processes used, 0 to 1.
     * @param parts of the time by the state of the lock's holder.
     * @param overReserved GPUs with more memory reserved than they have.
     */
    public record Result(long created, long refused, String refusal, double seconds, Histogram answers, long commits,
        double processorPart, double machinePart, List<Part> parts, long overReserved) {
        /** Creates a second. */
        public double rate() {
            return created / seconds;
        }
    }

    /** A part of the time, 0 to 1. */
    public record Part(String name, double part) {}

    /**
     * The costs of the connection alone, in nanoseconds.
     *
     * @param roundTrip an empty query, the median.
     * @param commit a transaction that writes some bytes to the disk, the median.
     */
    public record Costs(long roundTrip, long commit) {}

    /**
     * Starts brokers and waits until each sees the GPUs of all.
     *
     * @param gpus GPUs of each broker.
     * @param folder for the brokers' ids.
     */
    public DatabaseRun(Access access, int count, int gpus, Path folder) throws IOException, SQLException {
        this.access = access;
        this.gpus = gpus;
        loops = new DefaultEventLoopGroup(count);
        try {
            for (int i = 1; i <= count; i++) {
                String name = "broker-" + i;
                brokers.add(new DatabaseBroker(name, gpus, access, DatabaseBroker.folder(folder, name), loops.next()));
            }
            awaitAll();
        } catch (DatabaseException e) {
            close();
            throw new IOException(e.getMessage(), e);
        } catch (IOException | SQLException | RuntimeException e) {
            close();
            throw e;
        }
    }

    private void awaitAll() throws IOException {
        long deadlineNs = System.nanoTime() + START_LIMIT_NS;
        while (brokers.stream().anyMatch(broker -> broker.knownBrokers() < brokers.size())) {
            if (System.nanoTime() - deadlineNs > 0) {
                throw new IOException("the brokers must see each other within "
                    + TimeUnit.NANOSECONDS.toSeconds(START_LIMIT_NS) + " s");
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(100));
        }
    }

    /** Measures the connection, when nothing else runs. */
    public static Costs costs(Access access) throws SQLException {
        try (Connection connection = access.connect(); Statement statement = connection.createStatement()) {
            return new Costs(median(statement, "select 1"),
                median(statement, "select pg_logical_emit_message(true, 'hawser', 'some bytes')"));
        }
    }

    private static long median(Statement statement, String sql) throws SQLException {
        Histogram times = new Histogram(DIGITS);
        for (int i = 0; i < PROBES; i++) {
            long startNs = System.nanoTime();
            statement.execute(sql);
            times.recordValue(System.nanoTime() - startNs);
        }
        return times.getValueAtPercentile(50);
    }

    /** Sends creates at equal distances to one broker after the other, and waits for all answers. */
    public Result run(Wish wish) throws SQLException {
        Histogram answers = new ConcurrentHistogram(DIGITS);
        AtomicReference<String> refusal = new AtomicReference<>("");
        List<CompletableFuture<VgpuView>> all = new ArrayList<>();
        OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        try (LockSampler sampler = new LockSampler(access); Connection connection = access.connect()) {
            long commits = commits(connection);
            long processorNs = machine.getProcessCpuTime();
            machine.getCpuLoad(); // the next call tells the load since this one
            sampler.measure(true);
            long startNs = System.nanoTime();
            long count = Math.round(wish.rate * wish.seconds);
            for (int i = 0; i < count; i++) {
                long atNs = startNs + (long) (i * 1e9 / wish.rate);
                while (System.nanoTime() - atNs < 0) {
                    LockSupport.parkNanos(atNs - System.nanoTime());
                }
                all.add(brokers.get(i % brokers.size()).create("v" + i, wish.memoryBytes)
                    .whenComplete((view, failure) -> {
                        if (failure == null) {
                            answers.recordValue(System.nanoTime() - atNs); // from the wished time, not from a late one
                        } else {
                            refusal.compareAndSet("", String.valueOf((failure instanceof CompletionException
                                ? failure.getCause() : failure).getMessage()));
                        }
                    }));
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture<?>[]::new)).exceptionally(failure -> null).join();
            double seconds = (System.nanoTime() - startNs) / 1e9;
            sampler.measure(false);
            double machinePart = machine.getCpuLoad();
            double processorPart = (machine.getProcessCpuTime() - processorNs) / 1e9 / seconds
                / machine.getAvailableProcessors();
            List<Part> parts = new ArrayList<>();
            sampler.parts().forEach((state, part) -> parts.add(new Part(state.text(), part)));
            return new Result(answers.getTotalCount(), count - answers.getTotalCount(), refusal.get(), seconds, answers,
                commits(connection) - commits, processorPart, machinePart, parts, overReserved(connection));
        }
    }

    private static long commits(Connection connection) throws SQLException {
        return Access.number(connection, "select xact_commit from pg_stat_database where datname = current_database()");
    }

    /** Counts GPUs whose rows of vGPUs reserve more than the memory, without the contexts. */
    private long overReserved(Connection connection) throws SQLException {
        return Access.number(connection, "select count(*) from (select placed from vgpu group by placed having "
            + "sum(memory_bytes) > " + DatabaseBroker.gpuBytes() + ") g");
    }

    /** Number of all GPUs. */
    public int gpus() {
        return gpus * brokers.size();
    }

    @Override
    public void close() {
        brokers.forEach(DatabaseBroker::close);
        loops.shutdownGracefully(0, 1, TimeUnit.SECONDS).awaitUninterruptibly();
    }
}
