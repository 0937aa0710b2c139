package io.hawser.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.shm.region.RegionGeometry;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingCorruptException;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.shm.ring.Sleeper;
import io.hawser.shm.ring.Spin;
import io.hawser.shm.ring.Waker;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;

/**
 * The worker's ends of slot 0, and the stream of records from shm-transport/c/tests/ring_stream.h: record n begins with
 * its length and n; each of the following words is a hash of its place.
 */
final class RecordStream implements AutoCloseable {
    /** Longest record, in words of 8 bytes. */
    static final long LARGEST_WORDS = (1 << 20) / 8;

    private static final long TIMEOUT_NS = TimeUnit.MINUTES.toNanos(1); // then a wake-up was lost or the peer is dead

    private final Arena arena = Arena.ofShared();
    private final MemorySegment record = arena.allocate(LARGEST_WORDS * 8, 8);
    private final RingReader commands;
    private final RingWriter replies;
    private final Sleeper forBytes;
    private final Sleeper forRoom;
    private final Waker bytesThere;
    private final Waker roomThere;
    private final Spin spin = new Spin();

    RecordStream(MemorySegment region, RegionGeometry geometry) {
        commands = RingReader.command(region, geometry, 0);
        replies = RingWriter.reply(region, geometry, 0);
        long guest = geometry.guestPage(0);
        long host = geometry.hostPage(0);
        long commandSignal = guest + RegionLayout.GUEST_COMMAND_SIGNAL_OFFSET;
        long replySignal = host + RegionLayout.HOST_REPLY_SIGNAL_OFFSET;
        forBytes = new Sleeper(region, host + RegionLayout.HOST_COMMAND_WAITING_OFFSET, commandSignal);
        forRoom = new Sleeper(region, host + RegionLayout.HOST_ROOM_WAITING_OFFSET, commandSignal);
        bytesThere = new Waker(region, guest + RegionLayout.GUEST_REPLY_WAITING_OFFSET, replySignal);
        roomThere = new Waker(region, guest + RegionLayout.GUEST_ROOM_WAITING_OFFSET, replySignal);
    }

    /** Echoes 32-byte records for the given number of rounds. */
    void echo(long rounds) throws RingCorruptException {
        for (long n = 0; n < rounds; n++) {
            receive(32);
            send(32);
        }
    }

    void receiveAll(long seed, long records, long most) throws RingCorruptException {
        for (long n = 0; n < records; n++) {
            long words = words(seed, n, most);
            receive(words * 8);
            assertEquals(words * 8 | n << 32, record.get(ValueLayout.JAVA_LONG, 0), "record " + n);
            for (long i = 1; i < words; i++) {
                if (record.get(ValueLayout.JAVA_LONG, i * 8) != hash(seed + n * LARGEST_WORDS + i)) {
                    throw new AssertionError("a record must come as it was sent: record=" + n + ", word=" + i);
                }
            }
        }
    }

    void sendAll(long seed, long records, long most) throws RingCorruptException {
        for (long n = 0; n < records; n++) {
            long words = words(seed, n, most);
            record.set(ValueLayout.JAVA_LONG, 0, words * 8 | n << 32);
            for (long i = 1; i < words; i++) {
                record.set(ValueLayout.JAVA_LONG, i * 8, hash(seed + n * LARGEST_WORDS + i));
            }
            send(words * 8);
        }
    }

    @Override
    public void close() {
        arena.close();
    }

    private void receive(long bytes) throws RingCorruptException {
        long at = 0;
        while (at < bytes) {
            long taken = commands.takeAvailable(record, at, bytes - at);
            if (taken == 0) {
                await(false);
                continue;
            }
            commands.release();
            roomThere.wake();
            at += taken;
        }
    }

    private void send(long bytes) throws RingCorruptException {
        long at = 0;
        while (at < bytes) {
            long part = replies.hasRoom(bytes - at) ? bytes - at : Math.min(replies.room(), bytes - at);
            if (part == 0) {
                await(true);
                continue;
            }
            replies.put(record, at, part);
            replies.commit();
            bytesThere.wake();
            at += part;
        }
    }

    private void await(boolean room) throws RingCorruptException {
        spin.begin();
        boolean ready = ready(room);
        while (!ready && spin.once()) {
            ready = ready(room);
        }
        boolean slept = !ready;
        Sleeper sleeper = room ? forRoom : forBytes;
        while (!ready) {
            int seen = sleeper.prepare();
            ready = ready(room);
            if (!ready) {
                boolean woken = sleeper.sleep(seen, TIMEOUT_NS);
                ready = ready(room);
                if (!woken) {
                    throw new AssertionError("the other end must wake this one: room=" + room + ", ready=" + ready);
                }
            }
        }
        spin.end(slept);
    }

    private boolean ready(boolean room) throws RingCorruptException {
        return (room ? replies.room() : commands.available()) != 0;
    }

    private static long words(long seed, long n, long most) {
        long hash = hash(seed ^ n);
        long bound = (hash & 0xff) == 0 ? most : (hash & 0xf) == 0 ? 512 : 16;
        return 1 + (hash >>> 8) % Math.min(bound, most);
    }

    private static long hash(long x) {
        long y = x + 0x9e3779b97f4a7c15L;
        y = (y ^ y >>> 30) * 0xbf58476d1ce4e5b9L;
        y = (y ^ y >>> 27) * 0x94d049bb133111ebL;
        return y ^ y >>> 31;
    }
}
