package io.hawser.broker.region;

import io.hawser.broker.model.Printable;
import io.hawser.broker.model.Refusal;
import io.hawser.shm.region.RegionHeader;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.wire.RecordLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * A guest process's claim of a slot, copied to the broker's own memory because the guest can rewrite its page at any
 * time. Only {@link #problem} decides anything by these values.
 *
 * @param kind KIND_PROCESS, KIND_MACHINE or an invalid value.
 * @param pid for logs and views; 0 when the guest's value is out of range.
 * @param mapAddress where the guest has mapped the region, 0 when the guest's value is not a page's address.
 */
record Claim(int kind, long pid, long epoch, long descriptionHash, int protocolVersion, long mapAddress, String program,
    String host) {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED
        .withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int CLAIM_BYTES = RegionLayout.GUEST_HOST_OFFSET + RegionLayout.GUEST_HOST_BYTES;
    /** Largest process id of Linux. */
    private static final long MAX_PID = 1 << 22;

    /** Copies a claim out of a guest page. Reads the page once. */
    static Claim copy(MemorySegment region, long guestPage) {
        MemorySegment page = MemorySegment.ofArray(new byte[CLAIM_BYTES]);
        MemorySegment.copy(region, guestPage, page, 0, CLAIM_BYTES);
        long pid = page.get(LONG, RegionLayout.GUEST_PID_OFFSET);
        long address = page.get(LONG, RegionLayout.GUEST_MAP_ADDRESS_OFFSET);
        return new Claim(page.get(INT, RegionLayout.GUEST_KIND_OFFSET), pid > 0 && pid <= MAX_PID ? pid : 0,
            page.get(LONG, RegionLayout.GUEST_EPOCH_OFFSET),
            page.get(LONG, RegionLayout.GUEST_DESCRIPTION_HASH_OFFSET),
            page.get(INT, RegionLayout.GUEST_PROTOCOL_VERSION_OFFSET),
            address > 0 && address % RegionLayout.PAGE_BYTES == 0 ? address : 0,
            text(page, RegionLayout.GUEST_PROGRAM_OFFSET, RegionLayout.GUEST_PROGRAM_BYTES),
            text(page, RegionLayout.GUEST_HOST_OFFSET, RegionLayout.GUEST_HOST_BYTES));
    }

    private static String text(MemorySegment page, int offset, int bytes) {
        return Printable.text(RegionHeader.text(page, offset, bytes), bytes);
    }

    /** Why the broker must refuse the claim; null when the claim is valid. */
    Problem problem(long regionEpoch, long hash) {
        if (protocolVersion != RecordLayout.PROTOCOL_VERSION) {
            return new Problem(Refusal.VERSION, "guest and broker must speak the same protocol: guest="
                + Integer.toUnsignedString(protocolVersion) + " broker=" + RecordLayout.PROTOCOL_VERSION);
        }
        if (descriptionHash != hash) {
            return new Problem(Refusal.VERSION, String.format("guest libraries and broker must be made from the same "
                + "description of the API: guest=%016x broker=%016x", descriptionHash, hash));
        }
        if (epoch != regionEpoch) {
            return new Problem(Refusal.PROTOCOL, "the region was formatted after the guest read its header: guest="
                + Long.toUnsignedString(epoch) + " broker=" + Long.toUnsignedString(regionEpoch));
        }
        if (kind != RegionLayout.KIND_PROCESS && kind != RegionLayout.KIND_MACHINE) {
            return new Problem(Refusal.PROTOCOL, "a guest must be a process (1) or a machine (2): kind=" + kind);
        }
        return null;
    }

    /** A refusal and its reason. */
    record Problem(Refusal refusal, String reason) {}
}
