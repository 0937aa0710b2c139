package io.hawser.broker.region;

import io.hawser.shm.RegionGeometry;
import io.hawser.shm.RegionHeader;
import io.hawser.shm.RegionLayout;
import io.hawser.shm.os.Futex;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The broker's words in a slot. Each method reads what the guest can write at most once. Any access throws
 * InternalError when the region's file was cut.
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

    /** What the guest says; any number. */
    int guestState() {
        // Pairs with the guest's compare-and-swap of its state, after which its other fields are there.
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

    /** Told to the guest after everything else that it will read then. */
    void hostState(int state) {
        INT.setRelease(region, hostPage + RegionLayout.HOST_STATE_OFFSET, state);
    }

    /** Tells the guest that it is refused or over, and why. */
    void close(int state, int refusalCode, String reason) {
        INT.set(region, hostPage + RegionLayout.HOST_REFUSAL_CODE_OFFSET, refusalCode);
        RegionHeader.text(region, hostPage + RegionLayout.HOST_REASON_OFFSET, RegionLayout.HOST_REASON_BYTES, reason);
        hostState(state);
    }

    /** Ends the sleep of a guest that shares this kernel; others poll. */
    void wakeGuest() {
        INT.getAndAdd(region, hostPage + RegionLayout.HOST_REPLY_SIGNAL_OFFSET, 1);
        Futex.wake(region, hostPage + RegionLayout.HOST_REPLY_SIGNAL_OFFSET);
    }

    /** Makes the slot fit for the next claim. Its worker is gone. */
    void free() {
        // Until the last store of what follows, so that nobody fills in a claim that is about to be cleared.
        hostState(RegionLayout.HOST_ENDED);
        RegionHeader.free(region, geometry, slot);
    }
}
