package io.hawser.hypervisor;

import java.io.IOException;
import java.time.Duration;
import java.util.HashSet;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * Gets a domain its share, and gives it back: the vGPU, the region with its file, the settings of a guest by TCP. Asks
 * libvirt for nothing. Everything can be repeated, and goes on where it was left. One thread at a time for a domain.
 */
final class Provision {
    /** A vGPU has two hosts at most at a time, and each changes its owner once: more is none of a migration. */
    private static final int OWNER_ATTEMPTS = 4;

    private final Shares shares;
    private final RegionFiles files;
    private final GuestFiles guests;
    private final GuestNetwork network;
    private final Supplier<String> host;
    private final Duration abandoned;
    private final GpuDomain gpuDomain;

    /** How a domain comes by its share. */
    enum Arrival {
        /** It starts: whatever was there for it is left over. */
        START,
        /** It starts with what it had on another host. */
        MIGRATION,
        /** It runs, and its device is not there yet. */
        PLUG,
        /** It runs with all that it has. */
        RUNNING
    }

    /**
     * For a host, by its UUID as libvirt has it.
     *
     * @param gpuDomain of this host that has the broker; null when it runs on the host itself, or elsewhere.
     * @param abandoned age from which a file that nobody wants is left over.
     */
    Provision(Shares shares, RegionFiles files, GuestFiles guests, GuestNetwork network, Supplier<String> host,
        GpuDomain gpuDomain, Duration abandoned) {
        this.gpuDomain = gpuDomain;
        this.abandoned = abandoned;
        this.shares = shares;
        this.files = files;
        this.guests = guests;
        this.network = network;
        this.host = host;
    }

    /**
     * Gets a domain what it wishes.
     *
     * @throws ShareException when it cannot be had, or not now; what was had so far stays, for {@code withdraw} or
     *     the next attempt.
     */
    Claim provide(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture) throws ShareException {
        return onLatest(picture, seen -> provideSeen(tenant, wish, arrival, seen));
    }

    /** What is done by a picture of the broker, as long as that is right. */
    private interface Act<T> {
        T by(Shares.Picture picture) throws ShareException;
    }

    /** Does it anew by what there is now, after another host has been faster. */
    private <T> T onLatest(Shares.Picture picture, Act<T> act) throws ShareException {
        Shares.Picture seen = picture;
        for (int attempt = 1;; attempt++) {
            try {
                return act.by(seen);
            } catch (ShareException e) {
                if (e.reason() != ShareException.Reason.CHANGED || attempt == OWNER_ATTEMPTS) {
                    throw e;
                }
                seen = shares.look();
            }
        }
    }

    private Claim provideSeen(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture)
        throws ShareException {
        boolean fresh = arrival == Arrival.START || arrival == Arrival.MIGRATION;
        if (wish.transport() == Wish.Transport.SHM) {
            prepareFile(tenant.uuid, wish, arrival);
        }
        Claim claim = claim(tenant, wish, arrival, picture);
        if (!claim.owner().host().equals(host.get())) {
            return claim; // it is on its way to another host, and this one still has it
        }
        for (Claim other : picture.claims()) {
            if (other.owner().domain().equals(tenant.uuid) && other.owner().host().equals(host.get())
                && !other.vgpu().equals(claim.vgpu()) && arrival != Arrival.START) {
                shares.end(other); // of a claim whose answer was lost
            }
        }
        if (wish.transport() == Wish.Transport.SHM) {
            provideRegion(tenant.uuid, claim, wish, picture, fresh);
        } else {
            provideSettings(tenant.uuid, claim);
        }
        return claim;
    }

    private Claim claim(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture) throws ShareException {
        String here = host.get();
        if (arrival == Arrival.START) {
            for (Claim old : picture.claims()) {
                if (old.owner().domain().equals(tenant.uuid)) {
                    requireOurs(old);
                    shares.end(old);
                }
            }
            Claim made = shares.make(tenant.uuid, tenant.name, here, wish, shares.look());
            tenant.applied = wish;
            return made;
        }
        Optional<Claim> found = picture.claim(tenant.uuid, here);
        if (found.isEmpty()) {
            Claim made = shares.make(tenant.uuid, tenant.name, here, wish, picture);
            tenant.applied = wish;
            return made;
        }
        Claim claim = found.get();
        Claim.Owner owner = claim.owner();
        if (arrival == Arrival.MIGRATION && !owner.host().equals(here)) {
            claim = shares.give(claim, new Claim.Owner(tenant.uuid, here, owner.host()));
        } else if (owner.former().equals(here)) {
            return claim;
        } else {
            requireOurs(claim);
        }
        if (!claim.fits(wish) && !wish.equals(tenant.applied)) {
            claim = shares.change(claim, wish);
        }
        tenant.applied = wish;
        return claim;
    }

    private void requireOurs(Claim claim) throws ShareException {
        if (!claim.owner().host().equals(host.get())) {
            throw new ShareException(ShareException.Reason.FOREIGN, "the domain's vGPU " + claim.vgpu()
                + " belongs to the host " + claim.owner().host() + ": if the domain does not run there, hawserctl vgpus"
                + " delete --force " + claim.vgpu() + " makes it free");
        }
    }

    /** Before anything is asked of the broker, so that a domain that may do without it has its file in any case. */
    private void prepareFile(UUID domain, Wish wish, Arrival arrival) throws ShareException {
        try {
            if (arrival == Arrival.RUNNING) {
                files.takeOver(domain, wish.regionBytes());
            } else if (arrival != Arrival.PLUG || !files.hasLength(domain, wish.regionBytes())) {
                files.make(domain, wish.regionBytes());
            }
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, e.getMessage(), e);
        }
    }

    private void provideRegion(UUID domain, Claim claim, Wish wish, Shares.Picture picture, boolean fresh)
        throws ShareException {
        String name = Shmem.PREFIX + domain;
        Shares.Region region = fresh ? null : picture.regions().get(name);
        String place = network.regionPlace(files.path(domain));
        boolean elsewhere = gpuDomain != null;
        try {
            if (region != null && (region.failed() || !region.vgpu().equals(claim.vgpu())
                || region.sizeBytes() != wish.regionBytes() || region.slots() != wish.sessions()
                || !elsewhere && !region.path().equals(place) || !files.isFormatted(domain))) {
                shares.endRegion(name);
                region = null;
            }
            if (region == null) {
                if (elsewhere) {
                    gpuDomain.serve(shares, claim, name, domain, files.path(domain), wish);
                } else {
                    shares.makeRegion(claim, name, place, wish);
                }
                if (!files.isFormatted(domain)) {
                    shares.endRegion(name);
                    throw new ShareException(ShareException.Reason.REFUSED, "the broker has formatted another file "
                        + "than " + files.path(domain) + ": with transport shm it must run on this host, with this "
                        + "/dev/shm");
                }
            }
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "the region's file cannot be read: "
                + e.getMessage(), e);
        }
    }

    private void provideSettings(UUID domain, Claim claim) throws ShareException {
        Optional<GuestSettings> before = guests.read(domain);
        String broker = network.broker(shares);
        String ca = network.ca(broker);
        boolean good = before.isPresent() && claim.tokens() > 0
            && shares.hasToken(claim, before.get().token().split("\\.", 2)[0]);
        // What the guest has been told stays good: no token of its vGPU is revoked before the vGPU ends.
        String token = good ? before.get().token() : shares.makeToken(claim);
        GuestSettings now = new GuestSettings(broker, token, ca);
        if (!before.equals(Optional.of(now))) {
            guests.write(domain, now);
        }
    }

    /** What the guest of a domain has to be told; empty when there is nothing. */
    Optional<GuestSettings> settings(UUID domain) {
        return guests.read(domain);
    }

    /** Where the settings of a guest are. */
    String settingsPath(UUID domain) {
        return guests.path(domain).toString();
    }

    /** What becomes of a region's file when its domain has no share any more. */
    enum FileFate {
        /** The domain does not run: it goes. */
        GOES,
        /** The domain runs without the device: it goes if it is ours, and no process has it in its memory. */
        GOES_UNUSED,
        /** The domain has the device, which its guest does not give back: it stays. */
        STAYS
    }

    /**
     * Gives back everything of a domain: its files at once, the vGPU as soon as the broker answers.
     *
     * @param picture null when the broker is away.
     * @return whether there was something.
     */
    boolean withdraw(Tenant tenant, Shares.Picture picture, FileFate fate) throws ShareException {
        boolean ours = tenant.applied != null || tenant.fileKept;
        boolean any = removeSettings(tenant.uuid);
        if (fate == FileFate.GOES) {
            any |= removeFile(tenant.uuid);
        }
        tenant.applied = null;
        if (picture != null) {
            boolean claimed = !picture.held(tenant.uuid, host.get()).isEmpty();
            ours |= claimed;
            any |= claimed;
            onLatest(picture, seen -> {
                endClaims(tenant.uuid, seen);
                return null;
            });
        }
        if (gpuDomain != null) {
            gpuDomain.takeBack(tenant);
        }
        // After the broker has let go of it: it may be QEMU's, which makes a file before its device can be seen.
        if (fate == FileFate.GOES_UNUSED && isUnused(tenant.uuid, ours)) {
            any |= removeFile(tenant.uuid);
        }
        tenant.keepsFile(ours && files.exists(tenant.uuid), System.nanoTime());
        return any;
    }

    private void endClaims(UUID domain, Shares.Picture picture) throws ShareException {
        Set<String> ended = new HashSet<>();
        String here = host.get();
        for (Claim claim : picture.held(domain, here)) {
            Claim.Owner owner = claim.owner();
            if (owner.former().isEmpty()) {
                shares.end(claim);
                ended.add(claim.vgpu()); // and its regions with it
            } else {
                String other = owner.host().equals(here) ? owner.former() : owner.host();
                shares.give(claim, new Claim.Owner(domain, other, ""));
            }
        }
        Shares.Region region = picture.regions().get(Shmem.PREFIX + domain);
        boolean ofOthers = picture.claims().stream().anyMatch(c -> region != null && c.vgpu().equals(region.vgpu())
            && !c.owner().host().equals(here));
        String place = network.regionPlace(files.path(domain));
        if (region != null && !ended.contains(region.vgpu()) && !ofOthers && Objects.equals(region.path(), place)) {
            shares.endRegion(region.name());
        }
    }

    private boolean isUnused(UUID domain, boolean ours) throws ShareException {
        try {
            return files.exists(domain) && (ours ? !files.isMapped(domain) : files.isAbandoned(domain, abandoned));
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "the region's file cannot be looked at: "
                + e.getMessage(), e);
        }
    }

    private boolean removeSettings(UUID domain) throws ShareException {
        try {
            boolean any = guests.read(domain).isPresent();
            guests.remove(domain);
            return any;
        } catch (IOException e) {
            throw unremoved(e);
        }
    }

    private boolean removeFile(UUID domain) throws ShareException {
        try {
            boolean any = files.exists(domain);
            files.remove(domain);
            return any;
        } catch (IOException e) {
            throw unremoved(e);
        }
    }

    private static ShareException unremoved(IOException cause) {
        return new ShareException(ShareException.Reason.REFUSED, "a file of the domain cannot be removed: "
            + cause.getMessage(), cause);
    }
}
