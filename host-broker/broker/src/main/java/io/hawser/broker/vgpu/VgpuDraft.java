package io.hawser.broker.vgpu;

import io.hawser.broker.config.VgpuConfig;
import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Communication;
import io.hawser.broker.model.GpuChoice;
import io.hawser.broker.model.Labelled;
import io.hawser.broker.model.Labels;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Owner;
import io.hawser.broker.model.Sharing;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.regex.Pattern;

/**
 * A request for a vGPU or its change. A null field keeps its value, or selects the default. {@link #create} and {@link
 * #change} check the fields.
 */
public record VgpuDraft(Owner.Kind ownerKind, String ownerId, Long memoryBytes, Integer computeShare, String mode,
    String gpus, Collection<String> carriers, Integer maxSessions, String communication,
    Boolean swappable, Boolean rdma, Instant expires, Map<String, String> labels) {
    /** The expiry of a draft for a vGPU that never expires. */
    public static final Instant NEVER = Instant.MAX;
    /** Characters that are safe in logs, metrics, addresses and file names. */
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,62}");
    private static final int MAX_OWNER_CHARACTERS = 256; // column width in the database
    private static final int MAX_GPUS_CHARACTERS = 2048; // column width in the database; room for 50 UUIDs
    private static final Duration MAX_LIFE = Duration.ofDays(36_500); // databases store no time of any size
    private static final int MAX_SESSIONS = 1_000_000; // more than any machine has processes

    /** A draft that keeps the expiry and the labels. */
    public VgpuDraft(Owner.Kind ownerKind, String ownerId, Long memoryBytes, Integer computeShare, String mode,
        String gpus, Collection<String> carriers, Integer maxSessions, String communication, Boolean swappable,
        Boolean rdma) {
        this(ownerKind, ownerId, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, communication, swappable,
            rdma, null, null);
    }

    /** A draft that also keeps whether sessions may use RDMA. */
    public VgpuDraft(Owner.Kind ownerKind, String ownerId, Long memoryBytes, Integer computeShare, String mode,
        String gpus, Collection<String> carriers, Integer maxSessions, String communication, Boolean swappable) {
        this(ownerKind, ownerId, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, communication, swappable,
            null);
    }

    /** A draft that also keeps the communication, and whether the vGPU is swappable. */
    public VgpuDraft(Owner.Kind ownerKind, String ownerId, Long memoryBytes, Integer computeShare, String mode,
        String gpus, Collection<String> carriers, Integer maxSessions) {
        this(ownerKind, ownerId, memoryBytes, computeShare, mode, gpus, carriers, maxSessions, null, null);
    }

    /** Takes the fields from the settings. */
    public static VgpuDraft of(VgpuConfig settings) {
        return new VgpuDraft(null, null, settings.memoryBytes().asLongValue(), settings.computeShare(),
            settings.mode(), settings.gpus(), settings.carriers(), settings.maxSessions(),
            settings.communication(), settings.swappable(), settings.rdma())
            .expiring(NEVER);
    }

    /** The same draft with another expiry; {@link #NEVER} for none, null to keep the expiry. */
    public VgpuDraft expiring(Instant time) {
        return new VgpuDraft(ownerKind, ownerId, memoryBytes, computeShare, mode, gpus, carriers, maxSessions,
            communication, swappable, rdma, time, labels);
    }

    /** A draft that sets only this one's expiry, or none. */
    public VgpuDraft onlyExpiry() {
        return new VgpuDraft(null, null, null, null, null, null, null, null)
            .expiring(expires == null ? NEVER : expires);
    }

    /** The same draft with other labels; null to keep the labels. */
    public VgpuDraft labelled(Map<String, String> all) {
        return new VgpuDraft(ownerKind, ownerId, memoryBytes, computeShare, mode, gpus, carriers, maxSessions,
            communication, swappable, rdma, expires, all);
    }

    /**
     * Makes a new vGPU from the draft.
     *
     * @throws VgpuException of kind INVALID; the message names the rule.
     */
    public Vgpu create(String name, Origin origin, Instant now) throws VgpuException {
        if (name == null || !NAME.matcher(name).matches()) {
            throw VgpuException.invalid("a vGPU's name must match " + NAME + ": name=" + Texts.shown(name));
        }
        Vgpu standard = new Vgpu(name, UUID.randomUUID(), Owner.NONE, 0, Vgpu.FULL_SHARE, Sharing.SHARED,
            GpuChoice.ANY, Set.of(Carrier.TCP, Carrier.SHM), 0, Communication.NONE, false, false, null, Labels.NONE,
            origin, now, now);
        return change(standard, now);
    }

    /**
     * Applies the draft to a vGPU; {@code changed} becomes now even if nothing else differs.
     *
     * @throws VgpuException of kind INVALID; the message names the rule.
     */
    public Vgpu change(Vgpu before, Instant now) throws VgpuException {
        return requireSwappable(new Vgpu(before.name(), before.id(), owner(before.owner()),
            limited("memoryBytes", memoryBytes, before.memoryBytes(), 0, Long.MAX_VALUE / 2),
            (int) limited("computeShare", wide(computeShare), before.computeShare(), 1, Vgpu.FULL_SHARE),
            mode == null ? before.mode() : Labelled.of(Sharing.class, mode, "mode"), choice(before.gpus()),
            carriers == null ? before.carriers() : allowed(),
            (int) limited("maxSessions", wide(maxSessions), before.maxSessions(), 0, MAX_SESSIONS),
            communication == null ? before.communication()
                : Labelled.of(Communication.class, communication, "communication"),
            swappable == null ? before.swappable() : swappable, rdma == null ? before.rdma() : rdma,
            expiry(before, now), labels == null ? before.labels() : Labels.of(labels), before.origin(),
            before.created(), now));
    }

    private Instant expiry(Vgpu before, Instant now) throws VgpuException {
        if (expires == null || expires.equals(NEVER)) {
            return expires == null ? before.expires() : null;
        }
        if (!expires.isAfter(now) || expires.isAfter(now.plus(MAX_LIFE))) {
            throw VgpuException.invalid("a vGPU must expire in the future, in at most " + MAX_LIFE.toDays()
                + " days: expires=" + expires + " now=" + now);
        }
        return expires.truncatedTo(ChronoUnit.MICROS);
    }

    private static Vgpu requireSwappable(Vgpu vgpu) throws VgpuException {
        if (!vgpu.swappable()) {
            return vgpu;
        }
        String refused = null;
        if (!vgpu.reserves()) {
            refused = "must reserve memory: memoryBytes=0";
        } else if (vgpu.mode() != Sharing.SHARED) {
            refused = "must be shared: mode=" + vgpu.mode().label();
        } else if (!vgpu.gpus().isOne()) {
            refused = "must have one GPU: gpus=" + vgpu.gpus();
        } else if (vgpu.communication() != Communication.NONE) {
            // Its memory may be open in other processes.
            refused = "must have no communication: communication=" + vgpu.communication().label();
        }
        if (refused != null) {
            throw VgpuException.invalid("a swappable vGPU " + refused + " vgpu=" + vgpu.name());
        }
        return vgpu;
    }

    private static Long wide(Integer value) {
        return value == null ? null : Long.valueOf(value);
    }

    private static long limited(String what, Long wanted, long before, long least, long most) throws VgpuException {
        if (wanted == null) {
            return before;
        }
        if (wanted < least || wanted > most) {
            throw VgpuException.invalid(what + " must be " + least + ".." + most + ": " + what + "=" + wanted);
        }
        return wanted;
    }

    private Owner owner(Owner before) throws VgpuException {
        if (ownerKind == null && ownerId == null) {
            return before;
        }
        Owner.Kind kind = Optional.ofNullable(ownerKind).orElse(before.kind());
        String id = ownerId == null ? "" : ownerId;
        if (id.isEmpty() != (kind == Owner.Kind.NONE) || id.length() > MAX_OWNER_CHARACTERS
            || id.chars().anyMatch(Character::isISOControl)) {
            throw VgpuException.invalid("an owner must be a domain or a host with an id of 1.." + MAX_OWNER_CHARACTERS
                + " printable characters, or none without one: kind=" + kind.label() + " id=" + Texts.shown(id));
        }
        return new Owner(kind, id);
    }

    private GpuChoice choice(GpuChoice before) throws VgpuException {
        if (gpus == null) {
            return before;
        }
        try {
            GpuChoice choice = GpuChoice.parse(gpus);
            if (choice.toString().length() > MAX_GPUS_CHARACTERS) {
                throw new IllegalArgumentException("the list of GPUs must be at most " + MAX_GPUS_CHARACTERS
                    + " characters: characters=" + choice.toString().length());
            }
            return choice;
        } catch (IllegalArgumentException e) {
            throw VgpuException.invalid(e.getMessage());
        }
    }

    private Set<Carrier> allowed() throws VgpuException {
        List<Carrier> all = new ArrayList<>();
        for (String label : carriers) {
            all.add(
                Carrier.of(label).filter(carrier -> carrier != Carrier.RDMA).orElseThrow(() -> VgpuException.invalid(
                    "carriers must be of tcp and shm: carrier=" + Texts.shown(label))));
        }
        if (all.isEmpty()) {
            throw VgpuException.invalid("carriers must not be empty: guests must be able to come by tcp or shm");
        }
        return Set.copyOf(EnumSet.copyOf(all));
    }
}
