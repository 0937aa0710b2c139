package io.hawser.gpu.nvidia;

import io.airlift.compress.v3.Decompressor;
import io.airlift.compress.v3.MalformedInputException;
import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import io.airlift.compress.v3.zstd.ZstdJavaDecompressor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * Detects whether device code can print: code that calls printf contains {@code vprintf}, in PTX and in the symbols of
 * machine code. Checking for output costs each synchronisation some microseconds, which programs without such code
 * should not pay. In doubt the answer is yes. Any thread.
 *
 * <p>The software GPU's {@code FatBinary} describes the layout of a fat binary. The driver, which reads the image
 * afterwards, checks it.
 */
final class PrintSearch {
    /**
     * The largest image that is searched, compressed or not, because the search delays the load. A larger one counts as
     * printing.
     */
    static final long MAX_BYTES = 16L << 20;

    private static final byte[] WORD = "vprintf".getBytes(StandardCharsets.US_ASCII);
    private static final int HEADER_BYTES = 16; // of a fat binary
    private static final int ENTRY_BYTES = 64; // shortest header of an entry
    private static final long FLAG_LZ4 = 0x2000;
    private static final long FLAG_ZSTD = 0x8000;

    private final MemorySegment image;
    private long unpackedBytes;

    private PrintSearch(MemorySegment image) {
        this.image = image;
    }

    /**
     * Searches an image.
     *
     * @param image PTX, machine code, or a sequence of fat binaries.
     * @return false only if the image cannot print.
     */
    static boolean mayPrint(MemorySegment image) {
        if (image.byteSize() > MAX_BYTES) {
            return true;
        }
        // This search covers everything uncompressed, in any form of image.
        return contains(image.toArray(ValueLayout.JAVA_BYTE), (int) image.byteSize())
            || new PrintSearch(image).compressedMayPrint();
    }

    private boolean compressedMayPrint() {
        long at = 0;
        while (u32(at) == Images.FATBIN_MAGIC) {
            long headerBytes = Short.toUnsignedInt(image.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 6));
            long bodyBytes = i64(at + 8);
            long end = at + headerBytes + bodyBytes;
            if (headerBytes < HEADER_BYTES || bodyBytes < 0 || end > image.byteSize() || end <= at
                || entriesMayPrint(at + headerBytes, end)) {
                return true; // found, or unreadable
            }
            at = end + 7 & -8L;
        }
        return false;
    }

    private boolean entriesMayPrint(long from, long end) {
        long at = from;
        while (at < end) {
            long headerBytes = end - at < ENTRY_BYTES ? -1 : u32(at + 4) & 0xFFFFFFFFL;
            long payloadBytes = headerBytes < ENTRY_BYTES || headerBytes > end - at ? -1 : i64(at + 8);
            if (payloadBytes < 0 || payloadBytes > end - at - headerBytes) {
                return true;
            }
            long flags = i64(at + 40);
            if ((flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0
                && packedMayPrint(image.asSlice(at + headerBytes, payloadBytes), u32(at + 16), i64(at + 56),
                    (flags & FLAG_ZSTD) != 0 ? new ZstdJavaDecompressor() : new Lz4JavaDecompressor())) {
                return true;
            }
            at += headerBytes + payloadBytes;
        }
        return false;
    }

    private boolean packedMayPrint(MemorySegment payload, int packedBytes, long bytes, Decompressor decompressor) {
        if (packedBytes < 0 || packedBytes > payload.byteSize() || bytes < 0 || bytes > MAX_BYTES - unpackedBytes) {
            return true;
        }
        unpackedBytes += bytes;
        byte[] packed = payload.asSlice(0, packedBytes).toArray(ValueLayout.JAVA_BYTE);
        byte[] unpacked = new byte[(int) bytes];
        try {
            return contains(unpacked, decompressor.decompress(packed, 0, packed.length, unpacked, 0, unpacked.length));
        } catch (MalformedInputException | IllegalArgumentException | IndexOutOfBoundsException e) {
            return true; // unknown compression
        }
    }

    private static boolean contains(byte[] bytes, int length) {
        for (int at = 0; at <= length - WORD.length; at++) {
            int matched = 0;
            while (matched < WORD.length && bytes[at + matched] == WORD[matched]) {
                matched++;
            }
            if (matched == WORD.length) {
                return true;
            }
        }
        return false;
    }

    private int u32(long at) {
        return at + HEADER_BYTES > image.byteSize() ? 0 : image.get(ValueLayout.JAVA_INT_UNALIGNED, at);
    }

    private long i64(long at) {
        return image.get(ValueLayout.JAVA_LONG_UNALIGNED, at);
    }
}
