package io.hawser.hypervisor;

import io.hawser.client.ClientException;
import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.libvirt.LibvirtFunctions;
import io.hawser.hypervisor.libvirt.LibvirtHotPlug;
import io.hawser.hypervisor.libvirt.LibvirtHypervisor;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.xen.XenStoreSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;

/** The daemon's command line. */
public final class Hawserd {
    private static final Path CONFIG = Path.of("/etc/hawser/hawserd.conf");
    private static final int FAILED = 1;
    private static final int USAGE = 2;

    private Hawserd() {
    }

    /** Runs until SIGTERM or SIGINT. */
    public static void main(String[] args) {
        Path config = CONFIG;
        boolean named = false;
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "-h", "--help" -> {
                    System.out.print(usage());
                    return;
                }
                case "-V", "--version" -> {
                    System.out.println("hawserd " + System.getProperty("hawserd.version", "(source tree)"));
                    return;
                }
                case "--config" -> {
                    if (++i == args.length) {
                        fail(USAGE, "--config names a file (see hawserd --help)");
                    }
                    config = Path.of(args[i]);
                    named = true;
                }
                default -> fail(USAGE, "unknown argument: " + args[i] + " (see hawserd --help)");
            }
        }
        Log.takeAll();
        try {
            run(HawserdConfig.read(config, named));
        } catch (ClientException | IOException e) {
            fail(FAILED, e.getMessage());
        }
    }

    static String usage() {
        return """
            usage: hawserd [--config FILE]
                   hawserd --help | --version

            Gives each libvirt domain the vGPU that its metadata asks for. Stays in the foreground. SIGTERM or SIGINT
            ends it and leaves domains and their vGPUs as they are. Logs to stderr.

              --config FILE  reads this file instead of /etc/hawser/hawserd.conf
              --version      prints the version
            """;
    }

    private static void run(HawserdConfig config) throws IOException {
        LibvirtHypervisor hypervisor = new LibvirtHypervisor(config.libvirtUris().toArray(String[]::new));
        // Tests replace the adapters of the host.
        Path sysfs = Path.of(System.getenv().getOrDefault("HAWSER_SYSFS", "/sys"));
        Daemon daemon = new Daemon(config, new Daemon.Parts(hypervisor, new LibvirtHotPlug(hypervisor),
            new LibvirtFunctions(hypervisor, new AdapterFiles(sysfs)), new XenStoreSettings()),
            Reconciler.Patience.STANDARD);
        CountDownLatch ended = new CountDownLatch(1);
        // A signal ends the JVM with the signal's exit code; this hook stops the daemon first.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            Readiness.tell(System.getenv("NOTIFY_SOCKET"), "STOPPING=1");
            daemon.close();
            ended.countDown();
        }, "shutdown"));
        Log.info("", "hawserd listens at " + config.socket() + " for " + String.join(", ", config.libvirtUris())
            + (config.shown().isEmpty() ? "" : "; " + String.join(" ", config.shown())));
        Readiness.tell(System.getenv("NOTIFY_SOCKET"), "READY=1");
        try {
            ended.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void fail(int exitCode, String sentence) {
        System.err.println("hawserd: " + sentence);
        System.exit(exitCode);
    }
}
