package io.hawser.worker.channel;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.memory.StagingPool;
import io.hawser.worker.memory.StagingPool.Staging;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Handlers get complete records, however a carrier splits them. */
class RecordCutterTest {
    private final StagingPool pool = new StagingPool(RecordLayout.MAX_RECORD_BYTES,
        bytes -> Arena.ofAuto().allocate(bytes, 64), memory -> {});
    private final List<byte[]> records = new ArrayList<>();
    private final List<String> refusals = new ArrayList<>();
    private int takenMemory;
    private int refusedAt = Integer.MAX_VALUE;

    /** Keeps a copy of each record. */
    private final class Keeper implements RecordHandler {
        @Override
        public boolean admit(RecordHeader header) {
            return records.size() < refusedAt;
        }

        @Override
        public Staging memoryFor(int bytes) {
            takenMemory++;
            return pool.take(bytes);
        }

        @Override
        public void giveBack(Staging memory) {
            takenMemory--;
            pool.give(memory);
        }

        @Override
        public boolean record(RecordHeader header, MemorySegment bytes, long offset, Staging memory) {
            assertEquals(0, bytes.address() + offset & 7, "records begin at multiples of 8 of the address space");
            records.add(bytes.asSlice(offset, header.lengthBytes()).toArray(ValueLayout.JAVA_BYTE));
            return false;
        }

        @Override
        public void refuse(String reason) {
            refusals.add(reason);
        }

        @Override
        public void drained() {}

        @Override
        public void gone(String reason) {}
    }

    /** A record with the next sequence number; a session's first is 3. */
    private static byte[] record(int number, int payloadBytes) {
        RecordWriter writer = new RecordWriter(64);
        writer.begin(0x10001, 3 + number, 1, 0, 0);
        writer.fixed(payloadBytes);
        for (int at = 0; at < payloadBytes; at += 8) {
            writer.i64(at, 0x0101_0101_0101_0101L * (number + 1) + at);
        }
        int length = writer.end();
        return Arrays.copyOf(writer.array(), length);
    }

    private static byte[] joined(byte[]... all) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Arrays.stream(all).forEach(out::writeBytes);
        return out.toByteArray();
    }

    /** Passes new bytes as a carrier does: in memory that also holds the bytes before them. */
    private static void bring(RecordCutter cutter, byte[] bytes, int from, int to) {
        MemorySegment memory = Arena.ofAuto().allocate(bytes.length + 8192L, 64).fill((byte) 0x5a);
        MemorySegment.copy(bytes, from, memory, ValueLayout.JAVA_BYTE, 0, to - from);
        cutter.accept(memory, 0, to - from);
    }

    private void assertWhole(byte[]... expected) {
        assertEquals(List.of(), refusals);
        assertEquals(expected.length, records.size());
        for (int i = 0; i < expected.length; i++) {
            assertArrayEquals(expected[i], records.get(i), "record " + i);
        }
    }

    @Test
    void shouldServeRecordsThatAreCutAnywhere() {
        byte[][] three = {record(0, 8), record(1, 64), record(2, 0)};
        byte[] stream = joined(three);
        for (int cut = 0; cut <= stream.length; cut++) {
            RecordCutter cutter = new RecordCutter(new Keeper());
            records.clear();
            bring(cutter, stream, 0, cut);
            bring(cutter, stream, cut, stream.length);
            assertWhole(three);
            assertEquals(0, cutter.missingBytes());
            cutter.dropPartial();
            assertEquals(0, takenMemory, "cut=" + cut);
        }
    }

    @Test
    void shouldServeALongRecordThatComesByteByByte() {
        byte[][] two = {record(0, RecordCutter.SMALL_RECORD_BYTES), record(1, 8)};
        byte[] stream = joined(two);
        RecordCutter cutter = new RecordCutter(new Keeper());
        for (int at = 0; at < stream.length; at++) {
            bring(cutter, stream, at, at + 1);
        }
        assertWhole(two);
        cutter.dropPartial();
        assertEquals(0, takenMemory);
    }

    @Test
    void shouldServeNothingBeforeItsLastByte() {
        byte[] one = record(0, 64);
        RecordCutter cutter = new RecordCutter(new Keeper());
        bring(cutter, one, 0, one.length - 1);
        assertEquals(List.of(), records);
        assertEquals(1, cutter.missingBytes());
        bring(cutter, one, one.length - 1, one.length);
        assertWhole(one);
    }

    @Test
    void shouldReceiveNothingAfterARecordThatIsNotAdmitted() {
        refusedAt = 1;
        RecordCutter cutter = new RecordCutter(new Keeper());
        byte[] stream = joined(record(0, 8), record(1, 8), record(2, 8));
        bring(cutter, stream, 0, stream.length);
        assertEquals(1, records.size());
        assertTrue(cutter.isDiscarding());
        bring(cutter, record(1, 8), 0, record(1, 8).length);
        assertEquals(1, records.size());
        assertEquals(List.of(), refusals);
    }

    @Test
    void shouldRefuseARecordThatIsNotTheNext() {
        RecordCutter cutter = new RecordCutter(new Keeper());
        byte[] stream = joined(record(0, 8), record(0, 8), record(1, 8));
        bring(cutter, stream, 0, stream.length);
        assertEquals(1, records.size());
        assertEquals(1, refusals.size());
        assertTrue(cutter.isDiscarding());
    }
}
