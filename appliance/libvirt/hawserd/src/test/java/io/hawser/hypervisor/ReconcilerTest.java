package io.hawser.hypervisor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import io.hawser.hypervisor.config.HawserdConfig;
import io.hawser.hypervisor.domain.Hypervisor;
import io.hawser.hypervisor.domain.Xml;
import io.hawser.hypervisor.files.AdapterFiles;
import io.hawser.hypervisor.libvirt.LibvirtFunctions;
import io.hawser.hypervisor.libvirt.LibvirtHotPlug;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.hypervisor.tenant.Tenants;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** hawserd's memory of domains while passes and hooks overlap. The broker has no vGPUs. */
class ReconcilerTest {
    private static final UUID DOMAIN = UUID.randomUUID();
    private static final String XML = Xml.domain(DOMAIN, "nomad", Xml.vgpu("transport='tcp'"), "");

    @TempDir
    Path folder;
    private HttpServer broker;
    private Daemon daemon;

    @BeforeEach
    void start() throws Exception {
        broker = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        broker.createContext("/", exchange -> {
            boolean isList = !exchange.getRequestURI().getPath().equals("/api/v1/broker");
            byte[] nothing = (isList ? "[]" : "{}").getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(200, nothing.length);
            exchange.getResponseBody().write(nothing);
            exchange.close();
        });
        broker.start();
        Hypervisor connection = new FakeHypervisor(UUID.randomUUID().toString()).connect();
        daemon = new Daemon(HawserdConfig.read(Files.writeString(folder.resolve("conf"), """
            broker.url = "http://127.0.0.1:%d"
            region.folder = "%s"
            socket.path = "%s"
            state-dir = "%s"
            hook.timeout = "300"
            """.formatted(broker.getAddress().getPort(), folder, folder.resolve("s"), folder.resolve("state"))), true),
            new Daemon.Parts(connection, new LibvirtHotPlug(connection), new LibvirtFunctions(connection,
                new AdapterFiles(folder)), null),
            Reconciler.Patience.STANDARD);
    }

    @AfterEach
    void stop() {
        daemon.close();
        broker.stop(0);
    }

    /** Whether a thread of the daemon waits in Tenants for the tenant that this test holds. */
    private static boolean hookWaits() {
        return Thread.getAllStackTraces().entrySet().stream()
            .anyMatch(thread -> thread.getKey().getName().startsWith("worker-")
                && thread.getKey().getState() == Thread.State.TIMED_WAITING
                && Arrays.stream(thread.getValue()).anyMatch(frame -> frame.getClassName().equals(
                    Tenants.class.getName()) && frame.getMethodName().equals("hold")));
    }

    @Test
    void shouldKeepATenantThatAHookWaitsFor() throws Exception {
        Reconciler reconciler = daemon.reconciler();
        Tenant before = daemon.tenants().hold(DOMAIN, "nomad", Duration.ofSeconds(Bench.LIMIT_S));
        try (ExecutorService libvirt = Executors.newSingleThreadExecutor()) {
            Future<?> hook;
            try {
                hook = libvirt.submit(() -> {
                    new UnixHttp(folder.resolve("s")).post("/v1/hooks/qemu/migrate/begin", XML);
                    return null;
                });
                while (!hookWaits()) {
                    assertFalse(hook.isDone(), "it must wait");
                    Thread.onSpinWait();
                }
                reconciler.reconcile(); // the domain does not run, and has nothing
                assertTrue(before.isForgotten());
            } finally {
                before.release();
            }
            hook.get(Bench.LIMIT_S, TimeUnit.SECONDS);
        }
        Tenant now = daemon.tenants().hold(DOMAIN, "", Duration.ofSeconds(Bench.LIMIT_S));
        assertNotSame(before, now);
        assertTrue(now.startRequested(Driver.QEMU, System.nanoTime()), "it comes from another host");
        now.release();
        assertEquals("nomad", now.name());
    }
}
