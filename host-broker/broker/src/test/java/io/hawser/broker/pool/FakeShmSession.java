package io.hawser.broker.pool;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.os.SharedMemory;
import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A fake worker's session in a region. The worker sends WELCOME, then an OUTPUT record with the assignment, and an
 * OUTPUT record "rung" each time the doorbell rings. Bytes that begin with the letter d, such as "die, now", end the
 * process.
 */
final class FakeShmSession {
    private static final VarHandle INT = ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle();
    private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(1);

    private FakeShmSession() {
    }

    /**
     * Serves until the guest has left. In the mode "deaf" the worker never notices the end. A session that comes from
     * another worker sends nothing any more.
     */
    static void serve(String mode, String assign, int descriptor, int doorbell, boolean isArrival) {
        try {
            RegionGeometry geometry = RegionGeometry.of(number(assign, "regionBytes"),
                (int) number(assign, "slotCount"));
            int slot = (int) number(assign, "slot");
            MemorySegment region = SharedMemory.map(descriptor, geometry.regionBytes(), 0).memory();
            if (isArrival) {
                awaitLeave(region, geometry.guestPage(slot));
                return;
            }
            RingWriter replies = RingWriter.reply(region, geometry, slot);
            RingReader commands = RingReader.command(region, geometry, slot);
            EventFd bell = doorbell < 0 ? null : EventFd.of(doorbell);
            RecordWriter record = new RecordWriter(1024);
            record.begin(RecordLayout.CONTROL_WELCOME, 0, 0, 0, 0);
            record.fixed(RecordLayout.WELCOME_FIXED_BYTES);
            record.i32(RecordLayout.WELCOME_PROTOCOL_VERSION_OFFSET, RecordLayout.PROTOCOL_VERSION);
            record.i64(RecordLayout.WELCOME_SESSION_ID_OFFSET, number(assign, "sessionId"));
            put(replies, record);
            output(replies, record, assign);
            MemorySegment taken = MemorySegment.ofArray(new byte[4096]);
            while (mode.equals("deaf") || (int) INT.getAcquire(region,
                geometry.guestPage(slot) + RegionLayout.GUEST_STATE_OFFSET) == RegionLayout.GUEST_CLAIMED) {
                long bytes = commands.takeAvailable(taken, 0, taken.byteSize());
                commands.release();
                if (bytes > 0 && taken.get(ValueLayout.JAVA_BYTE, 0) == 'd') {
                    Runtime.getRuntime().halt(9);
                }
                if (bell == null) {
                    LockSupport.parkNanos(LOOK_NS);
                } else if (bell.poll(LOOK_NS)) {
                    output(replies, record, "rung");
                }
            }
        } catch (IOException | RingCorruptException e) {
            System.err.println("the region cannot be served: " + e);
            System.exit(5);
        } catch (InternalError e) {
            System.err.println("the region is gone: " + e);
            System.exit(6);
        }
    }

    private static void awaitLeave(MemorySegment region, long guestPage) {
        while ((int) INT.getAcquire(region, guestPage + RegionLayout.GUEST_STATE_OFFSET)
            == RegionLayout.GUEST_CLAIMED) {
            LockSupport.parkNanos(LOOK_NS);
        }
    }

    private static void output(RingWriter replies, RecordWriter record, String text) {
        record.begin(RecordLayout.CONTROL_OUTPUT, 0, 0, 0, 0);
        record.fixed(RecordLayout.OUTPUT_FIXED_BYTES);
        record.buffer(RecordLayout.OUTPUT_BYTES_OFFSET, MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)));
        put(replies, record);
    }

    private static void put(RingWriter replies, RecordWriter record) {
        replies.put(MemorySegment.ofArray(record.array()), 0, record.end());
        replies.commit();
    }

    private static long number(String json, String field) {
        return Long.parseLong(json.replaceAll(".*\"" + field + "\":(-?\\d+).*", "$1"));
    }
}
