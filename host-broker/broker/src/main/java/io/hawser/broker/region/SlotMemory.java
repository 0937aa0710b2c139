package io.hawser.broker.region;

import io.hawser.shm.os.Futex;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionHeader;
import io.hawser.shm.region.RegionLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The broker's access to a slot. Each method reads a word that the guest can write at most once. Any access throws
 * InternalError when the region's file was truncated.
 */
final class SlotMemory {
    private static final VarHandle INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();

    private final MemorySegment region;
    private final RegionGeometry geometry;
    private final int slot;
    private final long guestPage;
    private final long hostPage;

    SlotMemory(MemorySegment region, RegionGeometry geometry, int slot) {
        this.region = region;
        this.geometry = geometry;
        this.slot = slot;
        guestPage = geometry.guestPage(slot);
        hostPage = geometry.hostPage(slot);
    }

    /** State that the guest has written; any number. */
    int guestState() {
        // Pairs with the guest's compare-and-swap of its state, which follows the stores of its other fields.
        return (int) INT.getAcquire(region, guestPage + RegionLayout.GUEST_STATE_OFFSET);
    }

    Claim claim() {
        return Claim.copy(region, guestPage);
    }

    long guestBeat() {
        return (long) LONG.getOpaque(region, guestPage + RegionLayout.GUEST_BEAT_OFFSET);
    }

    void start(long sessionId, int liveness) {
        LONG.set(region, hostPage + RegionLayout.HOST_SESSION_ID_OFFSET, sessionId);
        INT.set(region, hostPage + RegionLayout.HOST_LIVENESS_OFFSET, liveness);
        hostState(RegionLayout.HOST_STARTING);
    }

    /** Publishes the host state to the guest, after all other fields that the guest then reads. */
    void hostState(int state) {
        INT.setRelease(region, hostPage + RegionLayout.HOST_STATE_OFFSET, state);
    }

    /** Writes the refusal or the end of the session, with its reason, for the guest. */
    void close(int state, int refusalCode, String reason) {
        INT.set(region, hostPage + RegionLayout.HOST_REFUSAL_CODE_OFFSET, refusalCode);
        RegionHeader.text(region, hostPage + RegionLayout.HOST_REASON_OFFSET, RegionLayout.HOST_REASON_BYTES, reason);
        hostState(state);
    }

    /** Wakes a guest that shares this kernel; other guests poll. */
    void wakeGuest() {
        INT.getAndAdd(region, hostPage + RegionLayout.HOST_REPLY_SIGNAL_OFFSET, 1);
        Futex.wake(region, hostPage + RegionLayout.HOST_REPLY_SIGNAL_OFFSET);
    }

    /** Clears the slot for the next claim. Its worker has ended. */
    void free() {
        // Holds until the last store below, so that no guest fills in a claim that the broker is about to clear.
        hostState(RegionLayout.HOST_ENDED);
        RegionHeader.free(region, geometry, slot);
    }
}
