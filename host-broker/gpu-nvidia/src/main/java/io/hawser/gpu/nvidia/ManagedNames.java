package io.hawser.gpu.nvidia;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds the names of {@code __managed__} variables in device code. The driver cannot list them, and it alone decides
 * whether a variable of such a name is managed. One thread.
 */
final class ManagedNames implements CodeParts.Visitor {
    /** Names that count. A guest chooses them, and each costs a call of the driver. */
    static final int MAX_NAMES = 65536;
    private static final int ELF_MAGIC = 0x464C457F;
    // elf.h
    private static final int SECTION_BYTES = 64;
    private static final int SYMBOL_BYTES = 24;
    private static final int SHT_SYMTAB = 2;
    private static final int STT_OBJECT = 1;
    private static final int SHN_UNDEF = 0;
    private static final int MANAGED = 4; // st_other of a managed variable in nvcc's files

    private static final Pattern DECLARATION = Pattern.compile(
        "(\\.extern\\s+)?\\.global\\b([^;={]{0,256}?)\\.attribute\\s*\\(([^;={]{0,256}?)\\)\\s*(\\.[^;={]*)");
    private static final Pattern MANAGED_ATTRIBUTE = Pattern.compile("\\.managed\\b");
    private static final Pattern NAME = Pattern.compile("([A-Za-z_$%][\\w$]*)\\s*(?:\\[[^\\]]*\\]\\s*)*(?:,|$)");

    private final Set<String> names = new TreeSet<>();

    /** The names in the image that this has visited, also of variables that another image defines. */
    Set<String> names() {
        return names;
    }

    @Override
    public void code(int binary, MemorySegment code) {
        boolean isElf = code.byteSize() >= SECTION_BYTES
            && code.get(ValueLayout.JAVA_INT_UNALIGNED, 0) == ELF_MAGIC;
        if (isElf) {
            addSymbols(code);
        } else if (code.byteSize() <= CodeParts.MAX_UNPACKED_BYTES) {
            addDeclared(new String(code.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1));
        }
    }

    @Override
    public void packed(int binary, long bytes) {
        // the host cannot see its variables
    }

    private void addSymbols(MemorySegment elf) {
        long table = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, 40);
        int count = Short.toUnsignedInt(elf.get(ValueLayout.JAVA_SHORT_UNALIGNED, 60));
        if (table < 0 || table > elf.byteSize() - (long) count * SECTION_BYTES) {
            return;
        }
        for (int i = 0; i < count; i++) {
            long section = table + (long) i * SECTION_BYTES;
            int link = elf.get(ValueLayout.JAVA_INT_UNALIGNED, section + 40);
            if (elf.get(ValueLayout.JAVA_INT_UNALIGNED, section + 4) == SHT_SYMTAB && link >= 0 && link < count) {
                addSymbols(content(elf, section), content(elf, table + (long) link * SECTION_BYTES));
            }
        }
    }

    /** The bytes of a section; none when they leave the file. */
    private static MemorySegment content(MemorySegment elf, long section) {
        long at = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 24);
        long bytes = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 32);
        boolean isInside = at >= 0 && bytes >= 0 && at <= elf.byteSize() && bytes <= elf.byteSize() - at;
        return isInside ? elf.asSlice(at, bytes) : MemorySegment.NULL;
    }

    private void addSymbols(MemorySegment symbols, MemorySegment text) {
        for (long at = 0; at <= symbols.byteSize() - SYMBOL_BYTES && names.size() < MAX_NAMES; at += SYMBOL_BYTES) {
            int type = symbols.get(ValueLayout.JAVA_BYTE, at + 4) & 15;
            int other = symbols.get(ValueLayout.JAVA_BYTE, at + 5);
            int section = symbols.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 6);
            if (type == STT_OBJECT && (other & MANAGED) != 0 && section != SHN_UNDEF) {
                add(text, Integer.toUnsignedLong(symbols.get(ValueLayout.JAVA_INT_UNALIGNED, at)));
            }
        }
    }

    private void add(MemorySegment text, long from) {
        long end = from;
        while (end < text.byteSize() && text.get(ValueLayout.JAVA_BYTE, end) != 0) {
            end++;
        }
        if (from < end && end < text.byteSize()) {
            names.add(text.getString(from, StandardCharsets.UTF_8));
        }
    }

    private void addDeclared(String ptx) {
        Matcher declaration = DECLARATION.matcher(ptx);
        while (declaration.find() && names.size() < MAX_NAMES) {
            if (declaration.group(1) != null || !MANAGED_ATTRIBUTE.matcher(declaration.group(3)).find()) {
                continue;
            }
            Matcher name = NAME.matcher(declaration.group(4).strip());
            while (name.find()) {
                names.add(name.group(1));
            }
        }
    }
}
