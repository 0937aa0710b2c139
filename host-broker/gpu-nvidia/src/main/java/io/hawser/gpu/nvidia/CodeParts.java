package io.hawser.gpu.nvidia;

import io.airlift.compress.v3.Decompressor;
import io.airlift.compress.v3.MalformedInputException;
import io.airlift.compress.v3.lz4.Lz4JavaDecompressor;
import io.airlift.compress.v3.zstd.ZstdJavaDecompressor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

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
    private static final int KIND_ELF = 2;
    private static final int KIND_OFFSET = 0;
    private static final int ARCHITECTURE_OFFSET = 28; // 10 times the major number, and the minor one
    private static final int FLAGS_OFFSET = 40;
    private static final long FLAGS_SPECIFIC = 0x100000 | 0x200000; // for sm_90a, and for sm_100f
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
     * Visits an image. Of several versions of the same code it visits only those that the driver may choose: machine
     * code for the GPUs, or everything where a GPU has none.
     *
     * @param image PTX, machine code, or a sequence of fat binaries, with any content.
     * @param architectures of the GPUs, as 90 for sm_90; empty to visit everything.
     * @param visitors receive its parts.
     */
    static void visit(MemorySegment image, Set<Integer> architectures, Visitor... visitors) {
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
            List<Entry> entries = entries(image.asSlice(at + headerBytes, bodyBytes));
            boolean isMachineCode = !architectures.isEmpty() && architectures.stream()
                .allMatch(architecture -> entries.stream().anyMatch(entry -> entry.runsOn(architecture)));
            for (Entry entry : entries) {
                if (!isMachineCode || architectures.stream().anyMatch(entry::runsOn)) {
                    visitEntry(binary, entry.header, entry.payload, visitors);
                }
            }
            at += headerBytes + bodyBytes + 7 & -8L;
        }
    }

    /** A version of the code. */
    private record Entry(MemorySegment header, MemorySegment payload) {
        /** Whether it is machine code that a GPU can run. */
        boolean runsOn(int architecture) {
            int its = header.get(ValueLayout.JAVA_INT_UNALIGNED, ARCHITECTURE_OFFSET);
            boolean isSpecific = (header.get(ValueLayout.JAVA_LONG_UNALIGNED, FLAGS_OFFSET) & FLAGS_SPECIFIC) != 0;
            return header.get(ValueLayout.JAVA_SHORT_UNALIGNED, KIND_OFFSET) == KIND_ELF
                && (its == architecture || !isSpecific && its / 10 == architecture / 10 && its < architecture);
        }
    }

    private static List<Entry> entries(MemorySegment body) {
        List<Entry> entries = new ArrayList<>();
        long at = 0;
        while (body.byteSize() - at >= ENTRY_BYTES) {
            long headerBytes = Integer.toUnsignedLong(body.get(ValueLayout.JAVA_INT_UNALIGNED, at + 4));
            long payloadBytes = body.get(ValueLayout.JAVA_LONG_UNALIGNED, at + 8);
            if (headerBytes < ENTRY_BYTES || payloadBytes < 0 || payloadBytes > body.byteSize() - at - headerBytes) {
                break;
            }
            entries.add(new Entry(body.asSlice(at, headerBytes), body.asSlice(at + headerBytes, payloadBytes)));
            at += headerBytes + payloadBytes;
        }
        return entries;
    }

    private static void visitEntry(int binary, MemorySegment header, MemorySegment payload,
        Visitor[] visitors) {
        long flags = header.get(ValueLayout.JAVA_LONG_UNALIGNED, FLAGS_OFFSET);
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
