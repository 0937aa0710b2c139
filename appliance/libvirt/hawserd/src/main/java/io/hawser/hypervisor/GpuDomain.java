package io.hawser.hypervisor;

import io.hawser.shm.RegionTag;
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
 * The domain of this host that has the GPU and the broker: it is given each region as a device, which its broker finds
 * by a tag. It is another domain than the one whose share it is, so it may be asked for while that one's hook waits.
 */
final class GpuDomain {
    private static final Duration ASK_AGAIN = Duration.ofMillis(300);
    private static final String PLACE = "ivshmem:";

    private final String domain;
    private final HotPlug hotPlug;
    private final Duration seeLimit;

    /**
     * The domain of this name or UUID.
     *
     * @param hookTimeout of the hook in half of whose time its kernel must find a device: more is to be done in it.
     */
    GpuDomain(String domain, HotPlug hotPlug, Duration hookTimeout) {
        this.domain = domain;
        this.hotPlug = hotPlug;
        seeLimit = hookTimeout.dividedBy(2);
    }

    /**
     * Has its broker serve a region.
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
                // Its guest may not have seen the device yet, which looks to its broker like a tag that there is not.
                if (e.reason() != ShareException.Reason.REFUSED || end - System.nanoTime() < 0) {
                    throw e;
                }
            }
            if (!isNew) {
                // Its file may be gone: the tenant has been started again before the guest in there gave it back.
                isNew = lendAnew(tenant, wish);
            }
            try {
                Thread.sleep(ASK_AGAIN);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new ShareException(ShareException.Reason.AWAY, "hawserd ends", e);
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

    private boolean lendAnew(UUID tenant, Wish wish) throws ShareException {
        try {
            hotPlug.takeBack(domain, tenant);
            return hotPlug.lend(domain, tenant, wish.regionBytes()); // not while the guest has not given it back
        } catch (HypervisorException e) {
            throw cannotHave(e);
        }
    }

    private static ShareException cannotHave(HypervisorException cause) {
        return new ShareException(ShareException.Reason.AWAY, "the broker's domain cannot have the region: "
            + cause.getMessage(), cause);
    }

    /** Takes a region out of it, whose file is going. It has none of its own: libvirt may wait for its own hook. */
    void takeBack(Tenant tenant) {
        if (tenant.name.equals(domain) || tenant.uuid.toString().equals(domain)) {
            return;
        }
        try {
            hotPlug.takeBack(domain, tenant.uuid);
        } catch (HypervisorException e) {
            Log.warn(domain, "the region of " + Reconciler.nameOf(tenant) + " is still in the broker's domain: "
                + e.getMessage());
        }
    }

    /** Whether a view is of this domain. */
    boolean is(DomainView view) {
        return view.name().equals(domain) || view.uuid().toString().equals(domain);
    }

    /** Whose regions it has, by its live XML. */
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
            return Optional.empty(); // somebody else's device
        }
    }
}
