package io.hawser.hypervisor.share;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.domain.DomainXml;
import io.hawser.hypervisor.domain.HotPlug;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.model.WishException;
import io.hawser.hypervisor.tenant.Tenant;
import io.hawser.shm.region.RegionTag;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;

/**
 * The domain of this host that has the GPU and runs the broker. hawserd plugs each region into it as a device, which
 * its broker finds by a tag. It is never the domain whose hook waits, so hawserd may call libvirt for it during that
 * hook.
 */
public final class GpuDomain {
    private static final Duration ASK_AGAIN = Duration.ofMillis(300);
    private static final String PLACE = "ivshmem:";

    private final String domain;
    private final HotPlug hotPlug;
    private final Duration seeLimit;

    /**
     * @param domain its name or UUID.
     * @param hookTimeout the limit of a hook. The domain's kernel must find a device within half of it; the hook
     *     has more work to do after that.
     */
    public GpuDomain(String domain, HotPlug hotPlug, Duration hookTimeout) {
        this.domain = domain;
        this.hotPlug = hotPlug;
        seeLimit = hookTimeout.dividedBy(2);
    }

    /**
     * Makes its broker serve a region.
     *
     * @param file of the region.
     */
    void serve(Shares shares, Claim claim, String name, UUID tenant, Path file, Wish wish) throws ShareException {
        RegionTag tag = RegionTag.random();
        try (FileChannel region = FileChannel.open(file, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            tag.write(region);
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "the region's file cannot be written: "
                + e.getMessage(), e);
        }
        boolean isNew = lend(tenant, wish);
        long end = System.nanoTime() + seeLimit.toNanos();
        while (true) {
            try {
                shares.makeRegion(claim, name, PLACE + tag.hex(), wish);
                return;
            } catch (ShareException e) {
                // Until the domain's kernel has found the device, its broker rejects the tag as unknown.
                if (e.reason() != ShareException.Reason.REFUSED || end - System.nanoTime() < 0) {
                    throw e;
                }
            }
            if (!isNew) {
                // The device may map a removed file: the tenant was restarted before this domain gave the old device
                // back.
                isNew = lendAgain(tenant, wish);
            }
            try {
                Thread.sleep(ASK_AGAIN);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new ShareException(ShareException.Reason.AWAY, "hawserd is stopping", e);
            }
        }
    }

    private boolean lend(UUID tenant, Wish wish) throws ShareException {
        try {
            return hotPlug.lend(domain, tenant, wish.regionBytes());
        } catch (HypervisorException e) {
            throw cannotHave(e);
        }
    }

    private boolean lendAgain(UUID tenant, Wish wish) throws ShareException {
        try {
            hotPlug.takeBack(domain, tenant);
            return hotPlug.lend(domain, tenant, wish.regionBytes()); // fails while the old device is there
        } catch (HypervisorException e) {
            throw cannotHave(e);
        }
    }

    private static ShareException cannotHave(HypervisorException cause) {
        return new ShareException(ShareException.Reason.AWAY, "the broker's domain cannot have the region: "
            + cause.getMessage(), cause);
    }

    /**
     * Removes a region whose file is about to be removed. For the GPU domain itself this does nothing: libvirt may be
     * waiting for that domain's own hook.
     */
    void takeBack(Tenant tenant) {
        if (tenant.name().equals(domain) || tenant.uuid().toString().equals(domain)) {
            return;
        }
        try {
            hotPlug.takeBack(domain, tenant.uuid());
        } catch (HypervisorException e) {
            Log.warn(domain, "the region of " + tenant.label() + " could not be removed from the "
                + "broker's domain: " + e.getMessage());
        }
    }

    /** Whether a view describes this domain. */
    boolean describes(DomainView view) {
        return view.name().equals(domain) || view.uuid().toString().equals(domain);
    }

    /** The tenants whose regions the domain has, from its live XML. */
    static Set<UUID> tenants(DomainView view) {
        Set<UUID> found = new HashSet<>();
        try {
            for (Shmem shmem : DomainXml.parse(view.liveXml()).shmems()) {
                tenant(shmem).filter(uuid -> shmem.alias().equals(HotPlug.lentAlias(uuid))).ifPresent(found::add);
            }
        } catch (WishException e) {
            Log.warn(view.name(), e.getMessage());
        }
        return found;
    }

    private static Optional<UUID> tenant(Shmem shmem) {
        try {
            return shmem.name().startsWith(Shmem.PREFIX)
                ? Optional.of(UUID.fromString(shmem.name().substring(Shmem.PREFIX.length()))) : Optional.empty();
        } catch (IllegalArgumentException e) {
            return Optional.empty(); // not a device of hawserd
        }
    }
}
