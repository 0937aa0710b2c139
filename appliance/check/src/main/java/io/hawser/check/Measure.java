package io.hawser.check;

import static io.hawser.check.Target.Kind.AT_LEAST_NATIVE_TIMES;
import static io.hawser.check.Target.Kind.AT_LEAST_SOCKET_TIMES;
import static io.hawser.check.Target.Kind.AT_MOST;
import static io.hawser.check.Target.Kind.AT_MOST_NATIVE_PLUS;
import static io.hawser.check.Target.Kind.AT_MOST_NATIVE_TIMES;
import static io.hawser.check.Target.Kind.AT_MOST_SOCKET_PLUS;

import java.util.ArrayList;
import java.util.List;

/**
 * A row of the table of figures.
 *
 * @param name of the figure, as the benchmark prints it.
 * @param label text in the table.
 * @param unit of the shown value.
 * @param socket name of a plain socket's figure for comparison; empty for none.
 * @param memory name of plain shared memory's figure for comparison; empty for none.
 * @param tcp target over TCP.
 * @param shm target over shared memory.
 * @param timeOfBytes if above 0, the figure is the rate of copies of this length, and the table shows the time of
 *     one.
 */
record Measure(String name, String label, String unit, String socket, String memory, Target tcp, Target shm,
    long timeOfBytes) {

    private static final long KIB = 1 << 10;
    private static final long MIB = 1 << 20;
    private static final long[] SIZES = {64, KIB, 16 * KIB, 256 * KIB, MIB, 16 * MIB, 256 * MIB};
    /** Copies up to this length are shown as a time, longer ones as a rate. */
    private static final long SHORT_COPY_BYTES = 16 * KIB;
    /** Copies from here on use several connections over TCP. */
    private static final long SHARED_COPY_BYTES = 16 * MIB;
    private static final Target NEAR_NATIVE = new Target(AT_MOST_NATIVE_PLUS, 3);
    private static final Target NEAR_SOCKET = new Target(AT_MOST_SOCKET_PLUS, 10);

    /** Name of the figure of several plain sockets, as many as a long copy uses; it may not have been measured. */
    String sockets() {
        return socket.replace("limits.socket_", "limits.sockets_");
    }

    /** The target over a carrier. */
    Target target(Way way) {
        return switch (way) {
            case TCP -> tcp;
            case SHM -> shm;
            case NATIVE -> Target.NONE;
        };
    }

    /** Converts a figure of the benchmark into the shown value. */
    double shown(double figure) {
        return timeOfBytes > 0 ? timeOfBytes / (figure * 1e9) * 1e6 : figure;
    }

    /**
     * All rows in their order.
     *
     * @param atOnce as in {@link Options}.
     */
    static List<Measure> all(List<Integer> tenants, int atOnce) {
        List<Measure> rows = new ArrayList<>();
        latency(rows, "calls.synchronize", "synchronise");
        latency(rows, "calls.launch_synchronize", "launch and synchronise");
        latency(rows, "calls.copy64_in", "64 B to the device");
        latency(rows, "calls.copy64_in_synchronize", "64 B to the device, synchronise");
        latency(rows, "calls.copy64_out", "64 B from the device");
        latency(rows, "small.in", "8 B to the device, one of many");
        latency(rows, "small.out", "8 B from the device, one of many");
        rows.add(new Measure("calls.launch_cost", "asynchronous launch, cost in the caller", "us", "", "",
            Target.NONE, new Target(AT_MOST_NATIVE_TIMES, 1), 0));
        plain(rows, "calls.launches", "launches executed", "1/s");
        plain(rows, "calls.events", "event records executed", "1/s");
        allocations(rows);
        for (String memory : List.of("pinned", "pageable")) {
            for (String direction : List.of("in", "out")) {
                for (long bytes : SIZES) {
                    rows.add(copy(memory, direction, bytes));
                }
            }
        }
        for (String direction : List.of("in", "out")) {
            for (long bytes : SIZES) {
                rows.add(issued(direction, bytes));
            }
        }
        managed(rows);
        for (String[] loop : new String[][] {{"matrix_small", "loop of small matrix products"},
            {"matrix_large", "loop of large matrix products"}, {"nbody", "loop of n-body steps"}}) {
            rows.add(new Measure("applications." + loop[0], loop[1], "ms", "", "",
                new Target(AT_MOST_NATIVE_TIMES, 1.04), new Target(AT_MOST_NATIVE_TIMES, 1.01), 0));
        }
        for (int count : tenants) {
            if (count > 1) {
                rows.add(new Measure("tenants." + count + ".spread", count + " tenants, slowest over fastest", "", "",
                    "", new Target(AT_MOST, 1.05), new Target(AT_MOST, 1.05), 0));
            }
            rows.add(new Measure("tenants." + count + ".total",
                count + (count > 1 ? " tenants, work done together" : " tenant, work done"), "1/s", "", "",
                new Target(AT_LEAST_NATIVE_TIMES, 0.95), new Target(AT_LEAST_NATIVE_TIMES, 0.97), 0));
        }
        rows.add(new Measure("start.init", "session from the pool (cuInit)", "ms", "", "", new Target(AT_MOST, 5),
            new Target(AT_MOST, 5), 0));
        plain(rows, "start.first_kernel", "to the end of the first kernel", "ms");
        rows.add(new Measure("start.cold_init", "session without a pool (cuInit)", "ms", "", "",
            new Target(AT_MOST, 600), new Target(AT_MOST, 600), 0));
        plain(rows, "start.cold_first_kernel", "to the end of the first kernel, no pool", "ms");
        if (atOnce > 0) {
            rows.add(new Measure("start.at_once", atOnce + " programs at once, until the last has ended", "s", "", "",
                new Target(AT_MOST_NATIVE_TIMES, 1), new Target(AT_MOST_NATIVE_TIMES, 1), 0));
            rows.add(new Measure("start.at_once_median", "the same, until half of them have ended", "s", "", "",
                Target.NONE, Target.NONE, 0));
            rows.add(new Measure("start.at_once_processor", "processor time of each: worker, or native program", "s",
                "", "", new Target(AT_MOST, 1.5), new Target(AT_MOST, 1.5), 0));
        }
        rows.add(new Measure("idle.broker", "16 idle sessions: broker", "% of a core", "", "", new Target(AT_MOST, 1),
            new Target(AT_MOST, 1), 0));
        plain(rows, "idle.workers", "16 idle sessions: all workers", "% of a core");
        rows.add(new Measure("idle.broker_memory", "16 idle sessions: broker's memory", "MiB", "", "",
            new Target(AT_MOST, 250), new Target(AT_MOST, 250), 0));
        return rows;
    }

    private static void allocations(List<Measure> rows) {
        for (long bytes : new long[] {4 * KIB, MIB, 64 * MIB, 256 * MIB, 1024 * MIB}) {
            Target target = bytes == MIB ? new Target(AT_MOST_NATIVE_TIMES, 1)
                : bytes <= 64 * MIB ? NEAR_NATIVE : new Target(AT_MOST_NATIVE_TIMES, 1.2);
            String name = "calls.malloc_free" + (bytes == MIB ? "" : "." + bytes);
            rows.add(new Measure(name, "allocate and free " + size(bytes), "us", "", "",
                target, target, 0));
        }
        for (long bytes : new long[] {MIB, 16 * MIB}) {
            plain(rows, "calls.malloc_free_row." + bytes,
                "allocate 32 blocks of " + size(bytes) + ", free them; for each", "us");
        }
        rows.add(new Measure("calls.stream_use", "create a stream, copy 64 B, destroy it", "us", "", "",
            new Target(AT_MOST_NATIVE_TIMES, 1.1), new Target(AT_MOST_NATIVE_TIMES, 1.1), 0));
    }

    private static void managed(List<Measure> rows) {
        for (String[] pass : new String[][] {{"kernel", "managed: first kernel after the host has written"},
            {"read", "managed: the host reads after a kernel"},
            {"update", "managed: the host reads and writes after a kernel"}}) {
            rows.add(new Measure("managed." + pass[0], pass[1], "GB/s", "", "", Target.NONE,
                new Target(AT_LEAST_NATIVE_TIMES, 1), 0));
        }
        rows.add(new Measure("managed.page", "managed: the host touches one page after a kernel", "us", "", "",
            Target.NONE, new Target(AT_MOST_NATIVE_PLUS, 15), 0));
        plain(rows, "managed.word", "managed: the host writes a word, kernel, wait", "us");
    }

    private static void latency(List<Measure> rows, String name, String label) {
        rows.add(new Measure(name, label, "us", "limits.socket_round_trip", "limits.memory_round_trip", NEAR_SOCKET,
            NEAR_NATIVE, 0));
    }

    private static void plain(List<Measure> rows, String name, String label, String unit) {
        rows.add(new Measure(name, label, unit, "", "", Target.NONE, Target.NONE, 0));
    }

    /** Copies of pinned memory that a program issues back to back. */
    private static Measure issued(String direction, long bytes) {
        boolean isShort = bytes <= SHORT_COPY_BYTES;
        Target ofNative = new Target(AT_LEAST_NATIVE_TIMES, isShort ? 0.95 : 0.97);
        return new Measure("copies.issued_" + direction + "." + bytes,
            "pinned, back to back, " + size(bytes) + (direction.equals("in") ? " to the device" : " from the device"),
            "GB/s", isShort ? "" : "limits.socket_" + direction + "." + bytes, "",
            isShort ? ofNative : socketTarget(bytes), ofNative, 0);
    }

    private static Target socketTarget(long bytes) {
        return new Target(AT_LEAST_SOCKET_TIMES, bytes >= SHARED_COPY_BYTES ? 2 : 0.9);
    }

    private static Measure copy(String memory, String direction, long bytes) {
        boolean isShort = bytes <= SHORT_COPY_BYTES;
        Target tcp = isShort ? NEAR_SOCKET : socketTarget(bytes);
        Target shm = isShort ? NEAR_NATIVE
            : new Target(AT_LEAST_NATIVE_TIMES, memory.equals("pinned") ? 0.98 : 2);
        return new Measure("copies." + memory + "_" + direction + "." + bytes,
            memory + ", " + size(bytes) + (direction.equals("in") ? " to the device" : " from the device"),
            isShort ? "us" : "GB/s", "limits.socket_" + direction + "." + bytes, "limits.memory." + bytes, tcp, shm,
            isShort ? bytes : 0);
    }

    private static String size(long bytes) {
        return bytes >= MIB ? bytes / MIB + " MiB" : bytes >= KIB ? bytes / KIB + " KiB" : bytes + " B";
    }
}
