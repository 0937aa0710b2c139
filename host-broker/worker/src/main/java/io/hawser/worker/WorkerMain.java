package io.hawser.worker;

import io.hawser.cuda.backend.BackendOptions;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.worker.calls.Calls;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.ControlCodec;
import io.hawser.worker.control.ControlSocket;
import java.io.File;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * The session process. It opens the GPU, sends {@code ready} on its control socket, serves the one session that the
 * broker assigns, and exits. It exits within seconds of the end of the session or of the broker.
 *
 * <p>Start it as {@code java} {@link #JVM_FLAGS} {@code -cp 'app/*' io.hawser.worker.WorkerMain}. The worker enters its
 * jail before it is ready, and opens no file after that. The environment variable {@value #GPUS} lists the UUIDs of the
 * GPUs that it serves. The broker also passes them to NVIDIA's driver in CUDA_VISIBLE_DEVICES.
 *
 * <p>With {@code --helper 1} the process serves no session and has no jail: see {@link Helper}.
 *
 * <p>Exit status: 0 after a session or when the broker released the worker; 1 after a failure, which the log describes;
 * 2 for a wrong command line.
 */
public final class WorkerMain {
    /**
     * JVM flags that the broker should start workers with. The software GPU compiles kernels to large methods and needs
     * C2 for them, so huge methods are compiled too. The direct memory is for buffers of Netty and NIO; staging memory
     * is separate. The JVM writes its messages to standard error, because standard output may carry the output of
     * kernels.
     */
    public static final String JVM_FLAGS = "--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow "
        + "-XX:+UseSerialGC -XX:-DontCompileHugeMethods -XX:+ExitOnOutOfMemoryError -Xss2m -Xms64m -Xmx1g "
        + "-XX:MaxDirectMemorySize=256m -XX:-UsePerfData "
        + "-XX:+DisplayVMOutputToStderr -Xlog:disable -Xlog:all=warning:stderr "
        + "-XX:+DisableAttachMechanism -XX:+ErrorFileToStderr -XX:-CreateCoredumpOnCrash";

    private static final Logger LOG = System.getLogger(WorkerMain.class.getName());

    /** UUIDs of the GPUs to serve, separated by commas; all GPUs if it is not set. */
    private static final String GPUS = "HAWSER_GPUS";
    /** {@code off} if a guest is already waiting for this worker: the worker then skips its warm-up. */
    private static final String WARM_UP = "HAWSER_WARM_UP";

    private WorkerMain() {}

    /**
     * Loads the classes that only NVIDIA's backend needs, and runs all steps before the ready message without a broker.
     * Then makes the calls of {@link Training} if the options ask for them.
     */
    private static void train(WorkerOptions options) throws IOException, InterruptedException, ExecutionException,
        TimeoutException {
        for (String part : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (Path.of(part).getFileName().toString().startsWith("gpu-nvidia")) {
                loadClasses(Path.of(part));
            }
        }
        GpuBackend backend = Backends.open(options.backend(), backendOptions(options));
        new Worker(new ControlSocket(options.controlFd()), backend).warmUp();
        if (options.train() == WorkerOptions.Train.CALLS) {
            Training.run(backend, Training.SESSION);
        }
        ControlCodec codec = new ControlCodec();
        codec.encode(DeviceList.ready(backend, ""));
        codec.decode(codec.encode(new BrokerMessage.Assign(1, "", 0, "", "", List.of(), null)));
        System.exit(0);
    }

    private static void loadClasses(Path jar) throws IOException {
        try (JarFile entries = new JarFile(jar.toFile())) {
            for (String name : entries.stream().map(JarEntry::getName).filter(n -> n.endsWith(".class")).toList()) {
                Class.forName(name.substring(0, name.length() - ".class".length()).replace('/', '.'), false,
                    WorkerMain.class.getClassLoader());
            }
        } catch (ClassNotFoundException e) {
            throw new IOException("the jar lists a class that it lacks: jar=" + jar, e);
        }
    }

    private static BackendOptions backendOptions(WorkerOptions options) {
        String gpus = System.getenv(GPUS);
        List<String> chosen = gpus == null || gpus.isBlank() ? List.of() : List.of(gpus.split(","));
        return new BackendOptions(0, options.threads(), options.devices(), chosen);
    }

    /**
     * Runs the worker.
     *
     * @param args see {@link WorkerOptions#USAGE}.
     */
    public static void main(String[] args) {
        if (args.length == 1 && args[0].equals("--flags")) {
            System.out.println(JVM_FLAGS);
            return;
        }
        LogSetup.install();
        // Netty would search for a network card to derive channel names from, and no log shows these names.
        System.setProperty("io.netty.machineId", "02:00:00:00:00:00");
        WorkerOptions options;
        try {
            options = WorkerOptions.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println("hawser worker: " + e.getMessage() + "\n" + WorkerOptions.USAGE);
            System.exit(2);
            return;
        }
        int status;
        try {
            CompilerThreads.lowerPriority();
            if (options.train() != WorkerOptions.Train.OFF) {
                train(options);
                return;
            }
            if (options.isHelper()) {
                ProcessEnd.now(Helper.run(new ControlSocket(options.controlFd()), options.backend()) ? 0 : 1);
            }
            Thread loading = "off".equals(System.getenv(WARM_UP)) ? WarmUp.loadInBackground() : null;
            GpuBackend backend = Backends.open(options.backend(), backendOptions(options));
            ControlSocket control = new ControlSocket(options.controlFd());
            Worker worker = new Worker(control, backend);
            if (loading == null) {
                worker.warmUp();
            } else {
                loading.join();
            }
            Calls.loadAhead();
            if (options.rdma() != null) {
                worker.openFabric(options.rdma(), options.gpuDirect());
            }
            worker.confine(options.jail());
            status = worker.run() ? 0 : 1;
            // The message of a GPU that cannot be opened gives the cause, so the stack trace is logged at DEBUG only.
        } catch (IllegalArgumentException | IllegalStateException e) {
            LOG.log(Level.ERROR, "the worker failed: {0}", e.getMessage());
            LOG.log(Level.DEBUG, "the worker failed", e);
            status = 1;
        } catch (Exception e) {
            LOG.log(Level.ERROR, "the worker failed: " + e.getMessage(), e);
            status = 1;
        }
        ProcessEnd.now(status);
    }
}
