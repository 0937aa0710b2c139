package io.hawser.broker.rest;

import io.hawser.broker.model.Labelled;
import io.hawser.broker.model.Owner;
import io.hawser.broker.model.Texts;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.view.VgpuInfo;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Map;

/** Changes of a vGPU; see openapi.yml. A null field keeps its value. */
public record VgpuChange(VgpuInfo.Owner owner, String expectedOwner, Long memoryBytes, Integer computeShare,
    String mode, String gpus, List<String> carriers, Integer maxSessions, String communication,
    Boolean swappable, Boolean rdma, String expires, Map<String, String> labels) {
    /** A change without fields. */
    static final VgpuChange NOTHING = new VgpuChange(null, null, null, null, null, null, null, null,
        null, null, null, null, null);

    /** Converts the change to a draft. */
    VgpuDraft draft() throws VgpuException {
        if (carriers != null && carriers.contains(null)) {
            throw new VgpuException(VgpuException.Kind.INVALID, "carriers must be of tcp and shm: carrier=null");
        }
        Owner.Kind kind = owner == null || owner.kind() == null ? null
            : Labelled.of(Owner.Kind.class, owner.kind(), "owner.kind");
        return new VgpuDraft(kind, owner == null ? null : owner.id(), memoryBytes, computeShare, mode, gpus, carriers,
            maxSessions, communication, swappable, rdma, expiry(), labels);
    }

    private Instant expiry() throws VgpuException {
        try {
            return expires == null ? null : expires.isEmpty() ? VgpuDraft.NEVER : Instant.parse(expires);
        } catch (DateTimeParseException e) {
            throw VgpuException.invalid("a time must be like 2027-01-31T12:00:00Z, or empty for never: expires="
                + Texts.shown(expires));
        }
    }
}
