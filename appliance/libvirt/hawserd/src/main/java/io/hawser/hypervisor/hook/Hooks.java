package io.hawser.hypervisor.hook;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.FunctionXml;
import io.hawser.hypervisor.domain.Functions;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.XenGuestSettings;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Driver;
import io.hawser.hypervisor.model.FabricAddress;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.reconcile.Reconciler;
import io.hawser.hypervisor.share.Provision;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.hypervisor.tenant.Tenants;
import java.time.Duration;
import java.util.Optional;

/**
 * Answers libvirt's hooks. libvirt holds the domain during a hook, so this class never calls libvirt. The XML of the
 * hook contains the domain's wish. Any thread.
 */
public final class Hooks {
    /** Another step of the domain must end this long before the hook's limit. */
    private static final Duration STEP_BEFORE = Duration.ofSeconds(7);
    /** The last attempt at a broker that is not ready begins this long before the hook's limit. */
    private static final Duration NOT_YET_BEFORE = Duration.ofSeconds(4);
    private static final Duration ASK_AGAIN = Duration.ofMillis(500);

    private final Reconciler reconciler;
    private final Tenants tenants;
    private final Shares shares;
    private final Provision provision;
    private final XenGuestSettings xen;
    private final Functions functions;
    private final Duration stepLimit;
    private final Duration notYetLimit;

    /** @param timeout the longest time until a hook gets its answer. */
    public Hooks(Reconciler reconciler, Tenants tenants, Shares shares, Provision provision, XenGuestSettings xen,
        Functions functions, Duration timeout) {
        this.reconciler = reconciler;
        this.tenants = tenants;
        this.shares = shares;
        this.provision = provision;
        this.xen = xen;
        this.functions = functions;
        stepLimit = timeout.minus(STEP_BEFORE);
        notYetLimit = timeout.minus(NOT_YET_BEFORE);
    }

    /**
     * Answers one call of the hook.
     *
     * @param driver {@code qemu} or {@code libxl}.
     * @return why the domain may not start; empty if it may, and for every hook that cannot refuse.
     */
    public Optional<String> handle(String driver, String operation, String suboperation, String text) {
        boolean start = operation.equals("prepare") && suboperation.equals("begin");
        try {
            DomainXml xml = DomainXml.parse(text);
            Driver kind = driver.equals("libxl") ? Driver.XEN : Driver.QEMU;
            return switch (operation) {
                case "prepare" -> start ? prepare(xml, kind) : Optional.empty();
                case "started" -> started(xml, kind);
                case "stopped" -> {
                    // Not at "release": libvirt may have given the function to another domain by then.
                    releaseFunction(xml, kind);
                    yield stopped(xml);
                }
                case "release" -> stopped(xml);
                case "migrate", "restore" -> {
                    xml.wish(kind); // a domain with an invalid wish cannot start here, so it must not migrate here
                    yield operation.equals("migrate") ? incoming(xml) : Optional.empty();
                }
                default -> Optional.empty();
            };
        } catch (WishException e) {
            boolean refusable = start || operation.equals("migrate") || operation.equals("restore");
            return refusable ? Optional.of(e.getMessage()) : Optional.empty();
        } catch (HypervisorException e) {
            return start ? Optional.of(e.getMessage()) : Optional.empty();
        } finally {
            reconciler.request();
        }
    }

    private Optional<String> prepare(DomainXml xml, Driver driver) throws WishException {
        Tenant tenant = hold(xml);
        if (tenant == null) {
            return Optional.of("another change of this domain did not end in time");
        }
        Wish wish = null;
        try {
            boolean migrates = tenant.startRequested(driver, System.nanoTime());
            wish = xml.wish(driver).orElse(null);
            if (wish == null) {
                return Optional.empty();
            }
            for (Shmem shmem : xml.shmems()) {
                if (shmem.name().startsWith(Shmem.PREFIX) && !shmem.name().equals(xml.regionName())) {
                    throw new WishException("a domain may name only its own region: <shmem name='" + shmem.name()
                        + "'>, its own is " + xml.regionName());
                }
            }
            if (wish.transport() == Wish.Transport.SHM && xml.device().isEmpty()) {
                throw new WishException("the metadata asks for a vGPU by shm, but there is no device <shmem name='"
                    + xml.regionName() + "'>: hawserctl attach --config adds it");
            }
            if (wish.hasNetwork()) {
                if (!new FunctionXml(xml).has(wish)) {
                    throw new WishException("the metadata asks for a virtual function of the network " + wish.network()
                        + ", but there is no " + (wish.function().isEmpty() ? "interface with the address "
                            + FabricAddress.mac(xml.uuid()) : "hostdev " + wish.function())
                        + ": hawserctl attach --config adds it");
                }
                functions.prepare(xml.uuid(), wish);
            }
            Claim claim = provide(tenant, wish, migrates ? Provision.Arrival.MIGRATION : Provision.Arrival.START);
            Log.info(tenant.name(), (migrates ? "comes from another host" : "starts") + ": vGPU " + claim.vgpu());
            return Optional.empty();
        } catch (WishException e) {
            Log.warn(tenant.name(), "may not start: " + e.getMessage());
            throw e;
        } catch (ShareException e) {
            return startWithout(tenant, wish, e);
        } finally {
            tenant.startAnswered(System.nanoTime());
            tenant.release();
        }
    }

    /**
     * At boot libvirt starts domains while the broker still opens its GPUs, so this method retries for some seconds.
     */
    private Claim provide(Tenant tenant, Wish wish, Provision.Arrival arrival) throws ShareException {
        long end = System.nanoTime() + notYetLimit.toNanos();
        while (true) {
            try {
                return provision.provide(tenant, wish, arrival, shares.readPicture());
            } catch (ShareException e) {
                if (!e.isNotYet() || !wish.required() || end - System.nanoTime() < 0) {
                    throw e;
                }
                try {
                    Thread.sleep(ASK_AGAIN);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                    throw e;
                }
            }
        }
    }

    private Optional<String> startWithout(Tenant tenant, Wish wish, ShareException failure) {
        if (wish.required()) {
            Log.warn(tenant.name(), "may not start: " + failure.getMessage());
            return Optional.of(failure.getMessage());
        }
        if (wish.transport() == Wish.Transport.SHM) {
            try {
                provision.provideFile(tenant.uuid(), wish);
            } catch (ShareException e) {
                return Optional.of(e.getMessage());
            }
        }
        Log.warn(tenant.name(), "starts without its vGPU, which is not required: " + failure.getMessage());
        return Optional.empty();
    }

    /** A Xen guest already runs and waits for its settings. XenStore takes them without a call of libvirt. */
    private Optional<String> started(DomainXml xml, Driver driver) throws WishException {
        if (driver == Driver.XEN && xml.id() >= 0 && xml.wish(driver).isPresent()) {
            Optional<GuestSettings> settings = provision.settings(xml.uuid());
            try {
                settings.ifPresent(known -> xen.put(xml.id(), known));
            } catch (HypervisorException e) {
                Log.warn(xml.name(), "its settings are not in XenStore yet: " + e.getMessage());
            }
        }
        return Optional.empty();
    }

    private Optional<String> incoming(DomainXml xml) {
        Tenant tenant = hold(xml);
        if (tenant != null) {
            tenant.migrationAnnounced(System.nanoTime());
            tenant.release();
        }
        return Optional.empty();
    }

    private void releaseFunction(DomainXml xml, Driver driver) {
        try {
            xml.wish(driver).ifPresent(wish -> functions.release(xml.uuid(), wish.function()));
        } catch (WishException e) {
            Log.warn(xml.name(), "has stopped with an invalid wish: " + e.getMessage());
        }
    }

    private Optional<String> stopped(DomainXml xml) {
        Tenant tenant = hold(xml);
        if (tenant == null) {
            Log.warn(xml.name(), "has stopped during another change; its vGPU is released afterwards");
            return Optional.empty();
        }
        try {
            Shares.Picture picture = null;
            String away = "";
            try {
                picture = shares.readPicture();
            } catch (ShareException e) {
                away = e.getMessage();
            }
            boolean any = provision.withdraw(tenant, picture, Provision.FileFate.GOES);
            if (!away.isEmpty()) {
                Log.warn(tenant.name(), "has stopped; its vGPU is released when the broker answers: " + away);
            } else if (any) {
                Log.info(tenant.name(), "has stopped; its vGPU is released");
            }
        } catch (ShareException e) {
            Log.warn(tenant.name(), "has stopped; its vGPU is released later: " + e.getMessage());
        } finally {
            tenant.stopped(System.nanoTime());
            tenant.release();
        }
        return Optional.empty();
    }

    private Tenant hold(DomainXml xml) {
        return tenants.hold(xml.uuid(), xml.name(), stepLimit);
    }
}
