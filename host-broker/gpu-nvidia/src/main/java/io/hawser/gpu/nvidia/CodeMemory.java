package io.hawser.gpu.nvidia;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Estimates the device memory that code will take: for the code itself and for its variables, which may be far larger
 * than the image. The driver reports this neither before nor after it has loaded the code. Of several versions of the
 * code, the largest counts. Code that cannot be read counts with the length in its header. One thread.
 */
final class CodeMemory implements CodeParts.Visitor {
    private static final int ELF_MAGIC = 0x464C457F;
    // elf.h
    private static final int SECTION_BYTES = 64;
    private static final int SHT_PROGBITS = 1;
    private static final int SHT_NOBITS = 8;
    private static final long SHF_ALLOC = 2;
    private static final String SHARED = ".nv.shared"; // in the multiprocessors, not in device memory

    /** Variables of a module in PTX: the length of a vector, the type, and names with dimensions. */
    private static final Pattern VARIABLES = Pattern.compile("(\\.extern\\s+)?\\.global\\s+"
        + "(?:\\.(?:align\\s+\\d+|attribute\\s*\\([^)]*\\))\\s+)*(?:\\.v([24])\\s+)?"
        + "\\.(?:[busf](\\d{1,3})|(?!align|attribute)\\w+)\\s+([^;={]+)");
    private static final Pattern DIMENSION = Pattern.compile("\\[\\s*(\\d+)\\s*\\]");

    private final Map<Integer, Long> most = new HashMap<>(); // by fat binary

    /**
     * Estimates an image.
     *
     * @param image PTX, machine code, or a sequence of fat binaries, with any content.
     * @return bytes for any GPU, 0 or more; at most {@link Long#MAX_VALUE}.
     */
    static long bytes(MemorySegment image) {
        CodeMemory memory = new CodeMemory();
        CodeParts.visit(image, Set.of(), memory);
        return memory.bytes();
    }

    /** The estimate for the image that this has visited. */
    long bytes() {
        return most.values().stream().reduce(0L, CodeMemory::add);
    }

    @Override
    public void code(int binary, MemorySegment code) {
        most.merge(binary, ofCode(code), Math::max);
    }

    @Override
    public void packed(int binary, long bytes) {
        most.merge(binary, bytes, Math::max);
    }

    private static long ofCode(MemorySegment code) {
        boolean isElf = code.byteSize() >= SECTION_BYTES && code.get(ValueLayout.JAVA_INT_UNALIGNED, 0) == ELF_MAGIC;
        return isElf ? ofElf(code) : ofText(code);
    }

    private static long ofElf(MemorySegment elf) {
        long table = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, 40);
        int count = Short.toUnsignedInt(elf.get(ValueLayout.JAVA_SHORT_UNALIGNED, 60));
        int names = Short.toUnsignedInt(elf.get(ValueLayout.JAVA_SHORT_UNALIGNED, 62));
        if (table < 0 || table > elf.byteSize() - (long) count * SECTION_BYTES || names >= count) {
            return elf.byteSize();
        }
        long sum = 0;
        for (int i = 0; i < count; i++) {
            long section = table + (long) i * SECTION_BYTES;
            int type = elf.get(ValueLayout.JAVA_INT_UNALIGNED, section + 4);
            long flags = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 8);
            boolean isLoaded = (flags & SHF_ALLOC) != 0 && (type == SHT_PROGBITS || type == SHT_NOBITS);
            if (isLoaded && !isShared(elf, table + (long) names * SECTION_BYTES, section)) {
                sum = add(sum, elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 32));
            }
        }
        return sum;
    }

    private static boolean isShared(MemorySegment elf, long names, long section) {
        long at = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, names + 24)
            + Integer.toUnsignedLong(elf.get(ValueLayout.JAVA_INT_UNALIGNED, section));
        if (at < 0 || at > elf.byteSize() - SHARED.length()) {
            return false;
        }
        byte[] name = elf.asSlice(at, SHARED.length()).toArray(ValueLayout.JAVA_BYTE);
        return SHARED.equals(new String(name, StandardCharsets.ISO_8859_1));
    }

    private static long ofText(MemorySegment text) {
        if (text.byteSize() > CodeParts.MAX_UNPACKED_BYTES) {
            return text.byteSize();
        }
        String ptx = new String(text.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1);
        long sum = 0;
        Matcher variables = VARIABLES.matcher(ptx);
        while (variables.find()) {
            if (variables.group(1) != null) {
                continue; // defined in another image
            }
            long each = variables.group(3) == null ? Long.BYTES : Math.max(1, Long.parseLong(variables.group(3)) / 8);
            each = multiply(each, variables.group(2) == null ? 1 : Long.parseLong(variables.group(2)));
            for (String name : variables.group(4).split(",")) {
                long bytes = each;
                Matcher dimension = DIMENSION.matcher(name);
                while (dimension.find()) {
                    bytes = multiply(bytes, number(dimension.group(1)));
                }
                sum = add(sum, bytes);
            }
        }
        return sum;
    }

    private static long number(String digits) {
        return digits.length() > 18 ? Long.MAX_VALUE : Long.parseLong(digits);
    }

    private static long add(long a, long b) {
        return b < 0 || a > Long.MAX_VALUE - b ? Long.MAX_VALUE : a + b;
    }

    private static long multiply(long a, long b) {
        return b != 0 && a > Long.MAX_VALUE / b ? Long.MAX_VALUE : a * b;
    }
}
