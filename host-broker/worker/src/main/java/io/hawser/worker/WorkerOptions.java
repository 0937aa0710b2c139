package io.hawser.worker;

import io.hawser.shm.rdma.GpuDirect;
import io.hawser.shm.rdma.RdmaOptions;
import io.hawser.worker.jail.Jail;
import java.util.Locale;

/**
 * The worker's command line.
 *
 * @param controlFd descriptor of the control socket.
 * @param backend {@code auto}, {@code software} or {@code nvidia}.
 * @param threads processors that a software GPU may use; 0 for all.
 * @param devices number of devices that the software GPU shows.
 * @param jail how the worker confines itself before it is ready.
 * @param train whether the worker serves no session, and exits in order for the JVM to write the cache that its flags
 *     ask for.
 * @param rdma the device for sessions over RDMA; null for none.
 * @param gpuDirect of which GPUs that device uses the memory.
 * @param isHelper whether the worker serves no session, but moves the GPU state of other workers.
 */
public record WorkerOptions(int controlFd, String backend, int threads, int devices, Jail.Options jail, Train train,
    RdmaOptions rdma, GpuDirect gpuDirect, boolean isHelper) {
    /** Usage of the command line. */
    public static final String USAGE =
        "usage: WorkerMain [--control-fd N] [--backend auto|software|nvidia] [--threads N] "
            + "[--devices N] [--jail auto|strict|off] [--uid N] [--watched 0|1] [--sockets 0|1] "
            + "[--train off|start|calls] [--rdma OPTIONS] [--gpu-direct auto|on|off] [--helper 0|1]";

    private static final int DEFAULT_CONTROL_FD = 3;

    /** The work of a run that fills the JVM's cache. */
    public enum Train {
        /** Nothing: the worker serves a session. */
        OFF,
        /** All steps before the ready message. */
        START,
        /** The same, and the calls of programs that keep the GPU busy. */
        CALLS
    }

    /**
     * Reads the command line.
     *
     * @param args the arguments of {@code main}.
     * @return the options.
     * @throws IllegalArgumentException if an option is unknown, has no value or a wrong one; the message names the
     *     option.
     */
    public static WorkerOptions parse(String... args) {
        int controlFd = DEFAULT_CONTROL_FD;
        String backend = "auto";
        int threads = 0;
        int devices = 1;
        Jail.Mode jail = Jail.Mode.OFF;
        int uid = 0;
        boolean isWatched = false;
        boolean hasSockets = false;
        Train train = Train.OFF;
        RdmaOptions rdma = null;
        GpuDirect gpuDirect = GpuDirect.AUTO;
        boolean isHelper = false;
        for (int i = 0; i < args.length; i += 2) {
            if (i + 1 == args.length) {
                throw new IllegalArgumentException("an option needs a value: " + args[i]);
            }
            String value = args[i + 1];
            switch (args[i]) {
                case "--control-fd" -> controlFd = number(args[i], value);
                case "--backend" -> backend = value;
                case "--threads" -> threads = number(args[i], value);
                case "--devices" -> devices = number(args[i], value);
                case "--jail" -> jail = mode(value);
                case "--uid" -> uid = number(args[i], value);
                case "--watched" -> isWatched = number(args[i], value) != 0;
                case "--sockets" -> hasSockets = number(args[i], value) != 0;
                case "--train" -> train = train(value);
                case "--rdma" -> rdma = RdmaOptions.parse(value);
                case "--gpu-direct" -> gpuDirect = gpuDirect(value);
                case "--helper" -> isHelper = number(args[i], value) != 0;
                default -> throw new IllegalArgumentException("unknown option: " + args[i]);
            }
        }
        return new WorkerOptions(controlFd, backend, threads, devices, new Jail.Options(jail, uid, isWatched,
            hasSockets), train, rdma, gpuDirect, isHelper);
    }

    private static Jail.Mode mode(String value) {
        return switch (value) {
            case "auto", "strict", "off" -> Jail.Mode.valueOf(value.toUpperCase(Locale.ROOT));
            default -> throw new IllegalArgumentException("--jail must be auto, strict or off: " + value);
        };
    }

    private static GpuDirect gpuDirect(String value) {
        return switch (value) {
            case "auto", "on", "off" -> GpuDirect.valueOf(value.toUpperCase(Locale.ROOT));
            default -> throw new IllegalArgumentException("--gpu-direct must be auto, on or off: " + value);
        };
    }

    private static Train train(String value) {
        return switch (value) {
            case "off", "start", "calls" -> Train.valueOf(value.toUpperCase(Locale.ROOT));
            default -> throw new IllegalArgumentException("--train must be off, start or calls: " + value);
        };
    }

    private static int number(String option, String value) {
        try {
            int number = Integer.parseInt(value);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " needs a whole number: " + value, e);
        }
        throw new IllegalArgumentException(option + " must not be negative: " + value);
    }
}
