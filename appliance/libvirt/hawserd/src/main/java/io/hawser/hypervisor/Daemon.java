package io.hawser.hypervisor;

import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.command.Commands;
import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.door.Api;
import io.hawser.hypervisor.door.Door;
import io.hawser.hypervisor.files.GuestFiles;
import io.hawser.hypervisor.files.RegionFiles;
import io.hawser.hypervisor.hook.Hooks;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.share.GpuDomain;
import io.hawser.hypervisor.share.HostId;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenants;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** All parts of hawserd, over any hypervisor. */
final class Daemon implements AutoCloseable {
    /** The broker must answer this long before a hook's limit: the hook has more work to do after the answer. */
    private static final Duration BEFORE_HOOK = Duration.ofSeconds(7);
    private static final int CLOSE_LIMIT_S = 5;

    private final Tenants tenants;
    private final Reconciler reconciler;
    private final Hypervisor hypervisor;
    private final Shares shares;
    private final ExecutorService threads;
    private final Door door;

    /** The parts that depend on the hypervisor. */
    record Parts(Hypervisor hypervisor, HotPlug hotPlug, Functions functions, XenGuestSettings xen) {}

    /**
     * Starts hawserd: the socket answers when the constructor returns.
     *
     * @throws IOException a sentence; hawserd did not start.
     */
    Daemon(HawserdConfig config, Parts parts, Reconciler.Patience patience) throws IOException {
        hypervisor = parts.hypervisor();
        int uid = (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        int gid = (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:gid");
        folder(config.stateDir(), "rwx------");
        folder(config.stateDir().resolve("guests"), "rwx------");
        folder(config.socket().getParent(), "rwxr-xr-x");
        shares = new Shares(config::broker, config.hookTimeout().minus(BEFORE_HOOK));
        RegionFiles files = config.regions(uid, gid);
        GuestFiles guests = new GuestFiles(config.stateDir().resolve("guests"));
        AtomicInteger number = new AtomicInteger();
        // Not virtual threads: libvirt's calls are native and would block the few carrier threads.
        threads = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task, "worker-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        });
        HostId host = new HostId(config.stateDir().resolve("host-uuid"));
        GpuDomain gpuDomain = config.gpuDomain()
            .map(name -> new GpuDomain(name, parts.hotPlug(), config.hookTimeout())).orElse(null);
        Provision provision = new Provision(shares, files, guests, config.network(), host::uuid, gpuDomain,
            patience.abandoned());
        tenants = new Tenants();
        reconciler =
            new Reconciler(new Reconciler.Tools(hypervisor, parts.hotPlug(), parts.functions(), shares, provision,
                parts.xen(), host, tenants), patience, threads);
        Hooks hooks = new Hooks(reconciler, tenants, shares, provision, parts.xen(), parts.functions(),
            config.hookTimeout());
        Commands commands =
            new Commands(hypervisor, parts.hotPlug(), parts.functions(), shares, provision, tenants, reconciler);
        door = Door.open(config.socket(), config.socketGroup(), new Api(hooks, commands, threads, config.hookTimeout(),
            uid), threads);
        hypervisor.listen(reconciler);
        hypervisor.start();
        reconciler.start();
    }

    private static void folder(Path folder, String mode) throws IOException {
        if (!Files.isDirectory(folder)) {
            Files.createDirectories(folder,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode)));
        }
    }

    /** For tests: a test runs a pass in its own thread. */
    Reconciler reconciler() {
        return reconciler;
    }

    /** For tests. */
    Tenants tenants() {
        return tenants;
    }

    /** Stops hawserd; domains and their vGPUs stay as they are. */
    @Override
    public void close() {
        door.close();
        reconciler.close();
        hypervisor.close();
        threads.shutdownNow();
        try {
            if (!threads.awaitTermination(CLOSE_LIMIT_S, TimeUnit.SECONDS)) {
                Log.warn("", "stopping while a call of libvirt is unanswered");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        shares.close();
    }
}
