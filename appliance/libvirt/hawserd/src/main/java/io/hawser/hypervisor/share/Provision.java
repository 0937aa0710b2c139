package io.hawser.hypervisor.share;

import io.hawser.hypervisor.broker.Claim;
import io.hawser.hypervisor.broker.ShareException;
import io.hawser.hypervisor.broker.Shares;
import io.hawser.hypervisor.domain.DomainView;
import io.hawser.hypervisor.files.GuestFiles;
import io.hawser.hypervisor.files.RegionFiles;
import io.hawser.hypervisor.log.Log;
import io.hawser.hypervisor.model.GuestSettings;
import io.hawser.hypervisor.model.Shmem;
import io.hawser.hypervisor.model.Wish;
import io.hawser.hypervisor.tenant.Tenant;
import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;

/**
 * Obtains a domain's share and releases it: the vGPU, the region with its file, the settings of a guest that uses TCP
 * or RDMA. Never calls libvirt for the domain itself. Each operation can be repeated, and continues where it stopped.
 * The caller holds the tenant.
 */
public final class Provision {
    /**
     * During a migration a vGPU has at most two hosts, and each changes the owner once. More changes are not a
     * migration's.
     */
    private static final int OWNER_ATTEMPTS = 4;

    private final Shares shares;
    private final RegionFiles files;
    private final GuestFiles guests;
    private final GuestNetwork network;
    private final Supplier<String> host;
    private final Duration abandoned;
    private final GpuDomain gpuDomain;

    /** The situation in which a domain gets its share. */
    public enum Arrival {
        /** It starts: everything that exists for it is left over from an earlier run. */
        START,
        /** It starts with the vGPU that it had on another host. */
        MIGRATION,
        /** It runs, and its device is not plugged in yet. */
        PLUG,
        /** It runs with its device and vGPU. */
        RUNNING
    }

    /**
     * @param host supplies the host's UUID as libvirt reports it.
     * @param gpuDomain the domain of this host that runs the broker; null if the broker runs on the host itself, or
     *     elsewhere.
     * @param abandoned the age from which a file without a domain counts as left over.
     */
    public Provision(Shares shares, RegionFiles files, GuestFiles guests, GuestNetwork network, Supplier<String> host,
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
     * Obtains the share that a domain wishes.
     *
     * @throws ShareException if that is impossible, at least now. Parts that exist already stay, for {@code
     *     withdraw} or the next attempt.
     */
    public Claim provide(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture) throws ShareException {
        return onLatest(picture, seen -> provideSeen(tenant, wish, arrival, seen));
    }

    /** An action on the broker that is valid only while the picture is up to date. */
    private interface Act<T> {
        T by(Shares.Picture picture) throws ShareException;
    }

    /** Repeats the action with a new picture if another host changed the owner in the meantime. */
    private <T> T onLatest(Shares.Picture picture, Act<T> act) throws ShareException {
        Shares.Picture seen = picture;
        for (int attempt = 1;; attempt++) {
            try {
                return act.by(seen);
            } catch (ShareException e) {
                if (e.reason() != ShareException.Reason.CHANGED || attempt == OWNER_ATTEMPTS) {
                    throw e;
                }
                seen = shares.readPicture();
            }
        }
    }

    private Claim provideSeen(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture)
        throws ShareException {
        boolean fresh = arrival == Arrival.START || arrival == Arrival.MIGRATION;
        if (wish.transport() == Wish.Transport.SHM) {
            prepareFile(tenant.uuid(), wish, arrival);
        }
        Claim claim = claim(tenant, wish, arrival, picture);
        if (!claim.owner().host().equals(host.get())) {
            return claim; // the domain is migrating to another host and still runs here
        }
        for (Claim other : picture.claims()) {
            if (other.owner().domain().equals(tenant.uuid()) && other.owner().host().equals(host.get())
                && !other.vgpu().equals(claim.vgpu()) && arrival != Arrival.START) {
                shares.end(other); // left over from a request whose answer was lost
            }
        }
        if (wish.transport() == Wish.Transport.SHM) {
            provideRegion(tenant.uuid(), claim, wish, picture, fresh);
        } else {
            provideSettings(tenant.uuid(), claim, wish);
        }
        return claim;
    }

    private Claim claim(Tenant tenant, Wish wish, Arrival arrival, Shares.Picture picture) throws ShareException {
        String here = host.get();
        if (arrival == Arrival.START) {
            for (Claim old : picture.claims()) {
                if (old.owner().domain().equals(tenant.uuid())) {
                    requireOurs(old);
                    shares.end(old);
                }
            }
            Claim made = shares.make(tenant.uuid(), tenant.name(), here, wish, shares.readPicture());
            tenant.shareProvided(wish);
            return made;
        }
        Optional<Claim> found = picture.claim(tenant.uuid(), here);
        if (found.isEmpty()) {
            Claim made = shares.make(tenant.uuid(), tenant.name(), here, wish, picture);
            tenant.shareProvided(wish);
            return made;
        }
        Claim claim = found.get();
        Claim.Owner owner = claim.owner();
        if (arrival == Arrival.MIGRATION && !owner.host().equals(here)) {
            claim = shares.give(claim, new Claim.Owner(tenant.uuid(), here, owner.host()));
        } else if (owner.former().equals(here)) {
            return claim;
        } else {
            requireOurs(claim);
        }
        if (!claim.fits(wish) && !tenant.isProvided(wish)) {
            claim = shares.change(claim, wish);
        }
        tenant.shareProvided(wish);
        return claim;
    }

    private void requireOurs(Claim claim) throws ShareException {
        if (!claim.owner().host().equals(host.get())) {
            throw new ShareException(ShareException.Reason.FOREIGN, "the domain's vGPU " + claim.vgpu()
                + " belongs to the host " + claim.owner().host() + ": if the domain does not run there, hawserctl vgpus"
                + " delete --force " + claim.vgpu() + " frees it");
        }
    }

    /**
     * Makes the region's file of a domain that starts without its vGPU. Otherwise QEMU would make one that the broker
     * cannot open.
     */
    public void provideFile(UUID domain, Wish wish) throws ShareException {
        prepareFile(domain, wish, Arrival.PLUG);
    }

    /**
     * Called before any request to the broker, so that a domain that does not require its vGPU has its file in any
     * case.
     */
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
                    throw new ShareException(ShareException.Reason.REFUSED, "the broker has formatted a file other "
                        + "than " + files.path(domain) + ": with transport shm it must run on this host, with this "
                        + "/dev/shm");
                }
            }
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "the region's file cannot be read: "
                + e.getMessage(), e);
        }
    }

    private void provideSettings(UUID domain, Claim claim, Wish wish) throws ShareException {
        Optional<GuestSettings> before = guests.read(domain);
        String broker = network.broker(shares);
        String ca = network.ca(broker);
        boolean good = before.isPresent() && claim.tokens() > 0
            && shares.hasToken(claim, before.get().token().split("\\.", 2)[0]);
        // The guest's token stays valid: hawserd revokes no token of a vGPU before the vGPU ends.
        String token = good ? before.get().token() : shares.makeToken(claim);
        GuestSettings now = new GuestSettings(wish.transport().label(), broker, token, ca);
        if (!before.equals(Optional.of(now))) {
            guests.write(domain, now);
        }
    }

    /** The settings of a domain's guest; empty if there are none. */
    public Optional<GuestSettings> settings(UUID domain) {
        return guests.read(domain);
    }

    /** The file of the guest's settings. */
    public String settingsPath(UUID domain) {
        return guests.path(domain).toString();
    }

    /** The fate of a region's file when its domain has lost its share. */
    public enum FileFate {
        /** The domain does not run: the file is removed. */
        GOES,
        /** The domain runs without the device: the file is removed if it is hawserd's and no process maps it. */
        GOES_UNUSED,
        /** The domain has the device, and the guest does not give it back: the file stays. */
        STAYS
    }

    /**
     * Releases everything of a domain: its files at once, the vGPU as soon as the broker answers.
     *
     * @param picture null if the broker is away.
     * @return whether there was anything to release.
     */
    public boolean withdraw(Tenant tenant, Shares.Picture picture, FileFate fate) throws ShareException {
        boolean ours = tenant.hasShare() || tenant.isFileKept();
        boolean any = removeSettings(tenant.uuid());
        if (fate == FileFate.GOES) {
            any |= removeFile(tenant.uuid());
        }
        tenant.shareReleased();
        if (picture != null) {
            boolean claimed = !picture.held(tenant.uuid(), host.get()).isEmpty();
            ours |= claimed;
            any |= claimed;
            onLatest(picture, seen -> {
                endClaims(tenant.uuid(), seen);
                return null;
            });
        }
        if (gpuDomain != null) {
            gpuDomain.takeBack(tenant);
        }
        // Only after the broker has closed the file. The file may be QEMU's, which makes it before libvirt shows the
        // device.
        if (fate == FileFate.GOES_UNUSED && isUnused(tenant.uuid(), ours)) {
            any |= removeFile(tenant.uuid());
        }
        if (ours && files.exists(tenant.uuid())) {
            tenant.fileKept(System.nanoTime());
        } else {
            tenant.fileGone();
        }
        return any;
    }

    private void endClaims(UUID domain, Shares.Picture picture) throws ShareException {
        Set<String> ended = new HashSet<>();
        String here = host.get();
        for (Claim claim : picture.held(domain, here)) {
            Claim.Owner owner = claim.owner();
            if (owner.former().isEmpty()) {
                shares.end(claim);
                ended.add(claim.vgpu()); // the broker ends the vGPU's regions with it
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

    /**
     * Whether anything of a domain is left: a region's file, a guest's settings, a vGPU.
     *
     * @param picture null if the broker is away.
     */
    public boolean hasRemains(UUID domain, Shares.Picture picture) {
        return files.exists(domain) || guests.read(domain).isPresent() || isHeld(domain, picture);
    }

    /** Whether the picture shows a vGPU of a domain that this host owns. */
    public boolean isHeld(UUID domain, Shares.Picture picture) {
        return picture != null && !picture.held(domain, host.get()).isEmpty();
    }

    /** A domain's vGPU: of this host rather than of another. */
    public Optional<Claim> claim(UUID domain, Shares.Picture picture) {
        return picture.claim(domain, host.get());
    }

    /** The domains that have a region's file or a guest's settings. */
    public Set<UUID> tenantsOfFiles() {
        Set<UUID> found = new HashSet<>();
        try {
            found.addAll(guests.list());
            found.addAll(files.list());
        } catch (IOException e) {
            Log.error("", "the folder of regions or settings cannot be listed: " + e.getMessage());
        }
        return found;
    }

    /** The domains whose regions the GPU's domain has, if it is one of these. */
    public Set<UUID> tenantsOfLentRegions(Collection<DomainView> running) {
        Set<UUID> found = new HashSet<>();
        running.stream().filter(domain -> gpuDomain != null && gpuDomain.describes(domain))
            .forEach(domain -> found.addAll(GpuDomain.tenants(domain)));
        return found;
    }

    /** Whether a file exists that may be in use: another hawserd's, or a young one. */
    public boolean hasRecentFile(UUID domain) throws ShareException {
        return files.exists(domain) && !isUnused(domain, false);
    }

    private boolean isUnused(UUID domain, boolean ours) throws ShareException {
        try {
            return files.exists(domain) && (ours ? !files.isMapped(domain) : files.isAbandoned(domain, abandoned));
        } catch (IOException e) {
            throw new ShareException(ShareException.Reason.REFUSED, "the region's file cannot be examined: "
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
