package io.hawser.gpu.nvidia;

import io.airlift.compress.v3.Decompressor;
import io.airlift.compress.v3.MalformedInputException;
import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import io.airlift.compress.v3.zstd.ZstdJavaDecompressor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Unpacks an image into its PTX and machine code. An image of any content is safe to visit. Any thread.
 *
 * <p>The software GPU's {@code FatBinary} describes the layout of a fat binary. The driver, which reads the image
 * afterwards, checks it.
 */
final class CodeParts {
    /** The largest code that is unpacked. Bounds a buffer. */
    static final long MAX_UNPACKED_BYTES = 256L << 20;
    private static final int HEADER_BYTES = 16; // of a fat binary
    private static final int ENTRY_BYTES = 64; // shortest header of an entry
    private static final long FLAG_LZ4 = 0x2000;
    private static final long FLAG_ZSTD = 0x8000;

    /** Receives the parts of an image in order. */
    interface Visitor {
        /**
         * Receives code.
         *
         * @param binary number of the fat binary, whose entries are versions of the same code.
         * @param code PTX, or an ELF file.
         */
        void code(int binary, MemorySegment code);

        /**
         * Receives code that cannot be unpacked.
         *
         * @param binary as above.
         * @param bytes its length unpacked, as its header states.
         */
        void packed(int binary, long bytes);
    }

    private CodeParts() {
    }

    /**
     * Visits an image.
     *
     * @param image PTX, machine code, or a sequence of fat binaries, with any content.
     * @param visitors receive its parts.
     */
    static void visit(MemorySegment image, Visitor... visitors) {
        int magic = image.byteSize() < Integer.BYTES ? 0 : image.get(ValueLayout.JAVA_INT_UNALIGNED, 0);
        if (magic != Images.FATBIN_MAGIC) {
            code(0, image, visitors);
            return;
        }
        long at = 0;
        for (int binary = 0; image.byteSize() - at >= HEADER_BYTES
            && image.get(ValueLayout.JAVA_INT_UNALIGNED, at) == Images.FATBIN_MAGIC; binary++) {
            long headerBytes = Short.toUnsignedInt(image.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 6));
            long bodyBytes = image.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8);
            if (headerBytes < HEADER_BYTES || bodyBytes < 0 || bodyBytes > image.byteSize() - at - headerBytes) {
                break; // the driver rejects it
            }
            visitEntries(binary, image.asSlice(at + headerBytes, bodyBytes), visitors);
            at += headerBytes + bodyBytes + 7 & -8L;
        }
    }

    private static void visitEntries(int binary, MemorySegment body, Visitor[] visitors) {
        long at = 0;
        while (body.byteSize() - at >= ENTRY_BYTES) {
            long headerBytes = Integer.toUnsignedLong(body.get(ValueLayout.JAVA_INT_UNALIGNED, at + 4));
            long payloadBytes = body.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8);
            if (headerBytes < ENTRY_BYTES || payloadBytes < 0 || payloadBytes > body.byteSize() - at - headerBytes) {
                break;
            }
            visitEntry(binary, body.asSlice(at, headerBytes), body.asSlice(at + headerBytes, payloadBytes), visitors);
            at += headerBytes + payloadBytes;
        }
    }

    private static void visitEntry(int binary, MemorySegment header, MemorySegment payload,
        Visitor[] visitors) {
        long flags = header.get(ValueLayout.JAVA_LONG_UNALIGNED, 40);
        if ((flags & (FLAG_LZ4 | FLAG_ZSTD)) == 0) {
            code(binary, payload, visitors);
            return;
        }
        int packedBytes = header.get(ValueLayout.JAVA_INT_UNALIGNED, 16);
        long bytes = header.get(ValueLayout.JAVA_LONG_UNALIGNED, 56);
        if (packedBytes < 0 || packedBytes > payload.byteSize() || bytes < 0 || bytes > MAX_UNPACKED_BYTES) {
            packed(binary, Math.max(0, bytes), visitors);
            return;
        }
        byte[] packed = payload.asSlice(0, packedBytes).toArray(ValueLayout.JAVA_BYTE);
        byte[] unpacked = new byte[(int) bytes];
        Decompressor decompressor = (flags & FLAG_ZSTD) != 0 ? new ZstdJavaDecompressor() : new Lz4JavaDecompressor();
        int length;
        try {
            length = decompressor.decompress(packed, 0, packed.length, unpacked, 0, unpacked.length);
        } catch (MalformedInputException | IllegalArgumentException | IndexOutOfBoundsException e) {
            packed(binary, bytes, visitors); // unknown compression
            return;
        }
        code(binary, MemorySegment.ofArray(unpacked).asSlice(0, length), visitors);
    }

    private static void code(int binary, MemorySegment code, Visitor[] visitors) {
        for (Visitor visitor : visitors) {
            visitor.code(binary, code);
        }
    }

    private static void packed(int binary, long bytes, Visitor[] visitors) {
        for (Visitor visitor : visitors) {
            visitor.packed(binary, bytes);
        }
    }
}
