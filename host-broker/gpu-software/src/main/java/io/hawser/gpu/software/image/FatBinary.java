package io.hawser.gpu.software.image;

import io.airlift.compress.v3.MalformedInputException;
import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import io.airlift.compress.v3.zstd.ZstdJavaDecompressor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One fat binary: a 16-byte header and entries. Layout observed in the output of nvcc 13.0 with each
 * {@code -Xfatbin --compress-mode}; little-endian:
 *
 * <pre>
 * fat binary   0 u32 magic  4 u16 version 1  6 u16 header bytes  8 u64 bytes after the header
 * entry        0 u16 kind (1 PTX, 2 ELF)   4 u32 header bytes   8 u64 payload bytes, padded
 *             16 u32 compressed bytes (0: not compressed)      24 u16 minor, 26 u16 major PTX version
 *             28 u32 architecture (75 = compute_75)            40 u64 flags   56 u64 bytes when unpacked
 * </pre>
 */
final class FatBinary {
    // A guest chooses the unpacked size in an entry, and that size is allocated: PTX of real libraries is smaller.
    static final long MAX_PTX_BYTES = 256L << 20;

    private static final int KIND_PTX = 1;
    private static final long FLAG_LZ4 = 0x2000;
    private static final long FLAG_ZSTD = 0x8000;
    /** The first flag marks compute_90a, the second compute_100f. */
    private static final long FLAGS_SPECIFIC = 0x100000 | 0x200000;
    private static final int ENTRY_HEADER_BYTES = 64;
    // A guest chooses the number; ordinary programs have a few, one for each architecture.
    private static final int MAX_ENTRIES = 1024;

    private final MemorySegment body;
    private final long bytes;

    private FatBinary(MemorySegment body, long bytes) {
        this.body = body;
        this.bytes = bytes;
    }

    /** Reads the header at the beginning of {@code image}. */
    static FatBinary at(MemorySegment image) throws ImageException {
        if (image.byteSize() < 16 || u32(image, 0) != (DeviceImage.FATBIN_MAGIC & 0xFFFFFFFFL)) {
            throw ImageException.invalid("fat binary must begin with its magic number");
        }
        int version = u16(image, 4);
        int headerBytes = u16(image, 6);
        long bodyBytes = image.get(ValueLayout.JAVA_LONG_UNALIGNED, 8);
        if (version != 1 || headerBytes < 16 || headerBytes > image.byteSize()
            || bodyBytes < 0 || bodyBytes > image.byteSize() - headerBytes) {
            throw ImageException.invalid("fat binary must lie within the image: version=" + version + " headerBytes="
                + headerBytes + " bodyBytes=" + bodyBytes + " imageBytes=" + image.byteSize());
        }
        return new FatBinary(image.asSlice(headerBytes, bodyBytes), headerBytes + bodyBytes);
    }

    /** Size of header and entries in bytes. */
    long bytes() {
        return bytes;
    }

    /**
     * The PTX that a driver would select: that of the highest architecture up to the device's. If there is none, the
     * lowest above it, because the software GPU accepts every architecture. PTX for one architecture or family only
     * (compute_90a, compute_100f) comes last. Null if there is no PTX.
     */
    String bestPtx(int deviceArchitecture) throws ImageException {
        long best = -1;
        long bestRank = Long.MIN_VALUE;
        long offset = 0;
        for (int entries = 0; offset < body.byteSize(); entries++) {
            if (entries == MAX_ENTRIES) {
                throw ImageException.invalid("fat binary must have at most " + MAX_ENTRIES + " entries");
            }
            long next = next(offset);
            if (u16(body, offset) == KIND_PTX) {
                long architecture = u32(body, offset + 28);
                long rank = architecture <= deviceArchitecture ? architecture : -architecture;
                if ((body.get(ValueLayout.JAVA_LONG_UNALIGNED, offset + 40) & FLAGS_SPECIFIC) != 0) {
                    // An architecture has 32 bits, so this ranks below every portable one.
                    rank -= 1L << 33;
                }
                if (rank > bestRank) {
                    bestRank = rank;
                    best = offset;
                }
            }
            offset = next;
        }
        return best < 0 ? null : unpack(best);
    }

    private long next(long offset) throws ImageException {
        long room = body.byteSize() - offset;
        if (room < ENTRY_HEADER_BYTES) {
            throw ImageException.invalid("fat binary entry must be whole: offset=" + offset + " room=" + room);
        }
        long headerBytes = u32(body, offset + 4);
        long payloadBytes = body.get(ValueLayout.JAVA_LONG_UNALIGNED, offset + 8);
        if (headerBytes < ENTRY_HEADER_BYTES || headerBytes > room || payloadBytes < 0
            || payloadBytes > room - headerBytes) {
            throw ImageException.invalid("fat binary entry must lie within its binary: offset=" + offset
                + " headerBytes=" + headerBytes + " payloadBytes=" + payloadBytes + " room=" + room);
        }
        return offset + headerBytes + payloadBytes;
    }

    private String unpack(long entry) throws ImageException {
        MemorySegment payload = body.asSlice(entry + u32(body, entry + 4),
            body.get(ValueLayout.JAVA_LONG_UNALIGNED, entry + 8));
        long compressedBytes = u32(body, entry + 16);
        long flags = body.get(ValueLayout.JAVA_LONG_UNALIGNED, entry + 40);
        long unpackedBytes = body.get(ValueLayout.JAVA_LONG_UNALIGNED, entry + 56);
        if ((flags & (FLAG_LZ4 | FLAG_ZSTD)) == 0) {
            return DeviceImage.text(payload);
        }
        if (compressedBytes > payload.byteSize() || unpackedBytes <= 0 || unpackedBytes > MAX_PTX_BYTES) {
            throw ImageException.invalid("compressed entry must fit and unpack to at most " + MAX_PTX_BYTES
                + " bytes: compressedBytes=" + compressedBytes + " payloadBytes=" + payload.byteSize()
                + " unpackedBytes=" + unpackedBytes);
        }
        byte[] packed = payload.asSlice(0, compressedBytes).toArray(ValueLayout.JAVA_BYTE);
        byte[] unpacked = new byte[(int) unpackedBytes];
        int got;
        try {
            got = (flags & FLAG_ZSTD) != 0
                ? new ZstdJavaDecompressor().decompress(packed, 0, packed.length, unpacked, 0, unpacked.length)
                : new Lz4JavaDecompressor().decompress(packed, 0, packed.length, unpacked, 0, unpacked.length);
        } catch (MalformedInputException | IllegalArgumentException | IndexOutOfBoundsException e) {
            throw ImageException.invalid("compressed entry must unpack: " + e.getMessage());
        }
        if (got != unpacked.length) {
            throw ImageException.invalid("compressed entry must unpack to its stated size: unpackedBytes="
                + unpackedBytes + " got=" + got);
        }
        return DeviceImage.text(MemorySegment.ofArray(unpacked));
    }

    private static int u16(MemorySegment at, long offset) {
        return Short.toUnsignedInt(at.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset));
    }

    private static long u32(MemorySegment at, long offset) {
        return Integer.toUnsignedLong(at.get(ValueLayout.JAVA_INT_UNALIGNED, offset));
    }
}
