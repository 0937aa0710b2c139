package io.hawser.broker.region;

import io.hawser.broker.TestBroker;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.FileLocks;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionHeader;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.wire.RecordLayout;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.file.Path;

/** A guest process's side of a claim. The broker sees its lock, although both run in the same process. */
final class TestRegionGuest implements AutoCloseable {
    private static final VarHandle INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final int NONE = -1;

    private final int descriptor;
    private final SharedMemory mapping;
    private final MemorySegment region;
    private final RegionHeader header;
    private final RegionGeometry geometry;
    private final int slot;
    private RingReader replies;
    private RingWriter commands;

    /** Opens the file of a region that a broker has formatted. */
    TestRegionGuest(Path path, int slot) throws IOException {
        this(Descriptors.open(path), slot);
    }

    /** Opens the file of a region whose header may be gone. */
    TestRegionGuest(Path path, int slot, RegionHeader header) throws IOException {
        this(Descriptors.open(path), slot, header);
    }

    /** Maps a region and takes over the descriptor. */
    TestRegionGuest(int descriptor, int slot) throws IOException {
        this(descriptor, slot, null);
    }

    private TestRegionGuest(int descriptor, int slot, RegionHeader header) throws IOException {
        this.descriptor = descriptor;
        this.slot = slot;
        mapping = SharedMemory.map(descriptor, Descriptors.fileBytes(descriptor), 0);
        region = mapping.memory();
        this.header = header == null ? RegionHeader.read(region) : header;
        geometry = this.header.geometry();
    }

    RegionHeader header() {
        return header;
    }

    MemorySegment region() {
        return region;
    }

    boolean lock() throws IOException {
        return FileLocks.tryLock(descriptor, slot);
    }

    void unlock() throws IOException {
        FileLocks.unlock(descriptor, slot);
    }

    /** Makes an honest claim. */
    void claim() {
        claim(RegionLayout.KIND_PROCESS);
    }

    void claim(int kind) {
        claim(kind, header.epoch(), TestBroker.DESCRIPTION_HASH, RecordLayout.PROTOCOL_VERSION);
    }

    void claim(int kind, long epoch, long hash, int version) {
        fill(slot, kind, epoch, hash, version);
        replies = RingReader.reply(region, geometry, slot);
        commands = RingWriter.command(region, geometry, slot);
        if (!INT.compareAndSet(region, guest(RegionLayout.GUEST_STATE_OFFSET), RegionLayout.GUEST_FREE,
            RegionLayout.GUEST_CLAIMED)) {
            throw new AssertionError("the slot must be free: state=" + guestState());
        }
    }

    /** Writes the fields of an honest claim into any slot. */
    void fill(int any) {
        fill(any, RegionLayout.KIND_PROCESS, header.epoch(), TestBroker.DESCRIPTION_HASH,
            RecordLayout.PROTOCOL_VERSION);
    }

    private void fill(int any, int kind, long epoch, long hash, int version) {
        long page = geometry.guestPage(any);
        INT.set(region, page + RegionLayout.GUEST_KIND_OFFSET, kind);
        LONG.set(region, page + RegionLayout.GUEST_PID_OFFSET, 4711L);
        LONG.set(region, page + RegionLayout.GUEST_EPOCH_OFFSET, epoch);
        LONG.set(region, page + RegionLayout.GUEST_DESCRIPTION_HASH_OFFSET, hash);
        INT.set(region, page + RegionLayout.GUEST_PROTOCOL_VERSION_OFFSET, version);
        LONG.set(region, page + RegionLayout.GUEST_MAP_ADDRESS_OFFSET, mapping.address());
        RegionHeader.text(region, page + RegionLayout.GUEST_PROGRAM_OFFSET, RegionLayout.GUEST_PROGRAM_BYTES,
            "vector\nadd");
        RegionHeader.text(region, page + RegionLayout.GUEST_HOST_OFFSET, RegionLayout.GUEST_HOST_BYTES, "guest-1");
    }

    /** Receives the worker's next record. */
    MemorySegment receive() throws RingCorruptException {
        MemorySegment length = MemorySegment.ofArray(new byte[8]);
        take(length);
        int bytes = length.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        MemorySegment record = MemorySegment.ofArray(new byte[bytes]);
        MemorySegment.copy(length, 0, record, 0, 8);
        MemorySegment rest = record.asSlice(8);
        take(rest);
        return record;
    }

    private void take(MemorySegment into) throws RingCorruptException {
        for (long at = 0; at < into.byteSize();) {
            TestBroker.await("bytes in the reply ring", () -> {
                try {
                    return replies.available() > 0;
                } catch (RingCorruptException e) {
                    throw new AssertionError(e);
                }
            });
            at += replies.takeAvailable(into, at, into.byteSize() - at);
        }
        replies.release();
    }

    /** Writes bytes to the command ring. Their number must be a multiple of 8. */
    void send(byte[] bytes) throws RingCorruptException {
        commands.put(MemorySegment.ofArray(bytes), 0, bytes.length);
        commands.commit();
    }

    void beat(long count) {
        LONG.setOpaque(region, guest(RegionLayout.GUEST_BEAT_OFFSET), count);
    }

    /** Sets the guest's state. */
    void say(int state) {
        INT.setVolatile(region, guest(RegionLayout.GUEST_STATE_OFFSET), state);
    }

    int guestState() {
        return (int) INT.getAcquire(region, guest(RegionLayout.GUEST_STATE_OFFSET));
    }

    int hostState() {
        return (int) INT.getAcquire(region, host(RegionLayout.HOST_STATE_OFFSET));
    }

    void awaitHostState(int state) {
        TestBroker.await("host state " + state, () -> hostState() == state);
    }

    long sessionId() {
        return (long) LONG.getAcquire(region, host(RegionLayout.HOST_SESSION_ID_OFFSET));
    }

    int liveness() {
        return (int) INT.getAcquire(region, host(RegionLayout.HOST_LIVENESS_OFFSET));
    }

    int refusalCode() {
        return (int) INT.getAcquire(region, host(RegionLayout.HOST_REFUSAL_CODE_OFFSET));
    }

    int replySignal() {
        return (int) INT.getAcquire(region, host(RegionLayout.HOST_REPLY_SIGNAL_OFFSET));
    }

    String reason() {
        return RegionHeader.text(region, host(RegionLayout.HOST_REASON_OFFSET), RegionLayout.HOST_REASON_BYTES);
    }

    long hostBeat() {
        return (long) LONG.getAcquire(region, (long) RegionLayout.HEADER_HOST_BEAT_OFFSET);
    }

    /** Whether the slot's three pages are as after a format. */
    boolean isClear() {
        return region.asSlice(geometry.slot(slot), 3L * RegionLayout.PAGE_BYTES)
            .mismatch(MemorySegment.ofArray(new byte[3 * RegionLayout.PAGE_BYTES])) == NONE;
    }

    /** Offset in the region of the signal for replies. */
    long signalOffset() {
        return host(RegionLayout.HOST_REPLY_SIGNAL_OFFSET);
    }

    private long guest(int offset) {
        return geometry.guestPage(slot) + offset;
    }

    private long host(int offset) {
        return geometry.hostPage(slot) + offset;
    }

    @Override
    public void close() {
        mapping.close();
        Descriptors.close(descriptor);
    }
}
