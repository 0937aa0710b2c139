package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generated.CudaOpcodes;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.HeapVirtualMemory;
import io.hawser.worker.fixture.Rig;
import io.hawser.worker.session.CudaResult;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class SparseCallsTest {
    private static final long UNIT = HeapVirtualMemory.UNIT;
    private static final int SPARSE = 0x40;
    private static final int FLOAT = 0x20;
    private static final long[] TILE = {0, 0, 0, 128, 128, 0, 128, 128, 1};

    private static int create(Guest guest, int opcode, long id, int flags, int levels) throws IOException {
        return guest.call(opcode, out -> {
            out.fixed(levels > 0 ? 56 : 48);
            out.i64(0, id);
            out.i64(8, 256);
            out.i64(16, 256);
            out.i32(32, FLOAT);
            out.i32(36, 1);
            out.i32(40, flags);
            if (levels > 0) {
                out.i32(48, levels);
            }
        }).status();
    }

    private static long array(Guest guest, int flags) throws IOException {
        long id = guest.newId(HandleKind.ARRAY);
        assertEquals(0, create(guest, CudaOpcodes.cuArray3DCreate_v2, id, flags, 0));
        return id;
    }

    private static long memory(Guest guest) throws IOException {
        long id = guest.newId(HandleKind.MEM_ALLOCATION);
        assertEquals(0, guest.call(CudaOpcodes.hwsMemCreate, out -> {
            out.fixed(32);
            out.i64(0, id);
            out.i64(8, UNIT);
        }).status());
        return id;
    }

    /** Maps memory onto a part, or unmaps it without memory. */
    private static int change(Guest guest, int opcode, long array, long memory, long offset, long... part)
        throws IOException {
        return guest.call(opcode, out -> {
            int at = memory == 0 ? 8 : 16;
            out.fixed(at + 88);
            out.i64(0, array);
            if (memory != 0) {
                out.i64(8, memory);
            }
            for (long number : part) {
                out.i64(at, number);
                at += 8;
            }
            out.i64(at, offset);
            out.i64(at + 8, 0);
        }).status();
    }

    private static int map(Guest guest, long array, long memory, long offset, long... part) throws IOException {
        return change(guest, CudaOpcodes.hwsArrayMap, array, memory, offset, part);
    }

    private static int unmap(Guest guest, long array, long... part) throws IOException {
        return change(guest, CudaOpcodes.hwsArrayUnmap, array, 0, 0, part);
    }

    private static long free(Guest guest) throws IOException {
        return guest.call(Guest.MEM_GET_INFO).i64(0);
    }

    @Test
    void shouldKeepReleasedMemoryUntilItsLastPart() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long array = array(guest, SPARSE);
            assertEquals(16 * UNIT, free(guest), "a sparse array has no memory");
            long memory = memory(guest);
            assertEquals(0, map(guest, array, memory, 512, TILE));
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, memory).status());
            assertEquals(15 * UNIT, free(guest), "the array needs it");
            assertEquals(Set.of(1L), rig.gpu().virtualMemory().live());
            assertEquals(0, unmap(guest, array, 0, 0, 0, 128, 128, 0, 64, 128, 1));
            assertEquals(15 * UNIT, free(guest), "half of the part is left");
            assertEquals(0, unmap(guest, array, TILE));
            assertEquals(16 * UNIT, free(guest));
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
            List<ByteBuffer> infos = rig.gpu().mapped();
            assertEquals(List.of(1, 2, 2), infos.stream().map(info -> info.getInt(56)).toList());
            ByteBuffer info = infos.getFirst();
            assertEquals(0, info.getInt(0), "an array");
            assertEquals(128, info.getInt(32), "offset x");
            assertEquals(128, info.getInt(44), "width");
            assertEquals(1, info.getLong(64), "the driver's handle");
            assertEquals(512, info.getLong(72));
            assertEquals(1, info.getInt(80), "device 0");
        }
    }

    @Test
    void shouldReleaseMemoryWithItsArray() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long mipmap = guest.newId(HandleKind.MIPMAPPED_ARRAY);
            assertEquals(0, create(guest, CudaOpcodes.cuMipmappedArrayCreate, mipmap, SPARSE, 2));
            long memory = memory(guest);
            assertEquals(0, change(guest, CudaOpcodes.hwsMipmapMap, mipmap, memory, 0, 1, 0, 0, 0, 0, 0, UNIT, 0, 0));
            assertEquals(1, rig.gpu().mapped().getFirst().getInt(0), "a mipmapped array");
            assertEquals(UNIT, rig.gpu().mapped().getFirst().getLong(40), "of the tail");
            assertEquals(0, guest.call(CudaOpcodes.hwsMemRelease, memory).status());
            guest.send(CudaOpcodes.cuMipmappedArrayDestroy, 0, mipmap);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
            assertEquals(16 * UNIT, free(guest));
            assertEquals(Set.of(), rig.gpu().virtualMemory().live());
        }
    }

    @Test
    void shouldRefuseOtherArraysAndMemoryBeyondItsEnd() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP, 16 * UNIT)) {
            Guest guest = rig.guest();
            long memory = memory(guest);
            long array = array(guest, SPARSE);
            assertEquals(CudaResult.INVALID_VALUE, map(guest, array(guest, 0), memory, 0, TILE));
            for (long offset : new long[] {UNIT, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
                assertEquals(CudaResult.INVALID_VALUE, map(guest, array, memory, offset, TILE), "offset=" + offset);
            }
            assertEquals(CudaResult.INVALID_VALUE, unmap(guest, array, 0, 1, 0, 0, 0, 0, 1, 1, 1), "no such level");
            long mipmap = guest.newId(HandleKind.MIPMAPPED_ARRAY);
            assertEquals(0, create(guest, CudaOpcodes.cuMipmappedArrayCreate, mipmap, SPARSE, 2));
            long level = guest.newId(HandleKind.ARRAY);
            assertEquals(0, guest.call(CudaOpcodes.cuMipmappedArrayGetLevel, out -> {
                out.fixed(24);
                out.i64(0, level);
                out.i64(8, mipmap);
            }).status());
            assertEquals(CudaResult.INVALID_VALUE, map(guest, level, memory, 0, TILE), "a level");
            assertEquals(List.of(), rig.gpu().mapped());
        }
    }

    private static int decompress(Guest guest, long... numbers) throws IOException {
        ByteBuffer operation = ByteBuffer.allocate(8 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
        for (long number : numbers) {
            operation.putLong(number);
        }
        return guest.call(CudaOpcodes.hwsBatchDecompress, out -> {
            out.fixed(16);
            out.i64(0, 0);
            out.i32(8, operation.capacity());
            out.buffer(12, MemorySegment.ofArray(operation.array()));
        }).status();
    }

    @Test
    void shouldDecompressOnlyMemoryOfTheSession() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long memory = guest.allocate(300);
            long[] right = {100, 100, memory + 200, memory, memory + 100, 4};
            assertEquals(0, decompress(guest, right));
            for (long[] wrong : new long[][] {{0, 301}, {0, -1}, {1, 201}, {1, -1}, {2, memory + 298}, {2, 0}, {3, 0},
                {3, memory + 201}, {4, 0}, {4, memory + 201}, {4, -1}}) {
                long[] numbers = right.clone();
                numbers[(int) wrong[0]] = wrong[1];
                assertEquals(CudaResult.INVALID_VALUE, decompress(guest, numbers), wrong[0] + "=" + wrong[1]);
            }
            assertEquals(1, rig.gpu().decompressed().size());
            ByteBuffer params = rig.gpu().decompressed().getFirst();
            assertEquals(64, params.capacity());
            assertEquals(memory, params.getLong(24));
            assertEquals(4, params.getInt(40));
        }
    }

    @Test
    void shouldEndSessionOfAnIncompleteDecompression() throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            guest.send(CudaOpcodes.hwsBatchDecompress, Guest.REPLY, out -> {
                out.fixed(16);
                out.i32(8, 47);
                out.buffer(12, MemorySegment.ofArray(new byte[47]));
            });
            String reason = guest.reasonOfLoss();
            assertTrue(reason.contains("decompressions must be complete"), reason);
        }
    }
}
