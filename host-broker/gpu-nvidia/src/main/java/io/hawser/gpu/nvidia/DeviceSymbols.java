package io.hawser.gpu.nvidia;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The symbols of device code that the driver cannot list: the names of its variables, and whether its kernels allocate
 * memory or print. A look for output costs each synchronisation some microseconds, which programs without printf()
 * should not pay. The driver alone decides which of the names the code that it loads really has. One thread.
 */
final class DeviceSymbols implements CodeParts.Visitor {
    /** Names that count, of each kind. A guest chooses them, and each costs a call of the driver. */
    static final int MAX_NAMES = 65536;
    private static final int ELF_MAGIC = 0x464C457F;
    // elf.h
    private static final int SECTION_BYTES = 64;
    private static final int SYMBOL_BYTES = 24;
    private static final int SHT_SYMTAB = 2;
    private static final int STT_OBJECT = 1;
    private static final int SHN_UNDEF = 0;
    private static final int MANAGED = 4; // st_other of a managed variable in nvcc's files
    private static final int MAX_SECTION_NAME = 16;

    private static final String ALLOCATOR = "malloc"; // operator new calls it, and so does cudaMalloc in kernels
    private static final String PRINTER = "vprintf"; // printf() calls it
    private static final int LONGEST_CALL = 7;
    private static final Pattern ALLOCATOR_CALL = Pattern.compile("\\b" + ALLOCATOR + "\\b");
    /** A declaration in PTX to its end or its initial value: attributes, the type, and names with dimensions. */
    private static final Pattern DECLARATION =
        Pattern.compile("(\\.extern\\s+)?(?<!\\w)\\.(?:global|const)\\s+(\\.[^;={]*+)([;=])");
    private static final Pattern ATTRIBUTES = Pattern.compile("\\.attribute\\s*\\((?:[^()]|\\([^()]*\\))*\\)");
    private static final Pattern MANAGED_ATTRIBUTE = Pattern.compile("\\.managed\\b");
    private static final Pattern NAME = Pattern.compile("([A-Za-z_$%][\\w$]*)\\s*(?:\\[[^\\]]*\\]\\s*)*(?:,|$)");

    private final Set<String> managed = new TreeSet<>();
    private final Set<String> variables = new TreeSet<>();
    private boolean isComplete = true;
    private boolean mayAllocate;
    private boolean mayPrint;

    /** Names that may be of managed variables, also of variables that another image defines. */
    Set<String> managed() {
        return managed;
    }

    /** Names that may be of other variables, constant ones included. */
    Set<String> variables() {
        return variables;
    }

    /** Whether {@link #variables} names each variable of the code. */
    boolean isComplete() {
        return isComplete;
    }

    /** Whether kernels may print. */
    boolean mayPrint() {
        return mayPrint;
    }

    /** Whether kernels may allocate memory by malloc(). */
    boolean mayAllocate() {
        return mayAllocate;
    }

    @Override
    public void code(int binary, MemorySegment code) {
        boolean isElf = code.byteSize() >= SECTION_BYTES
            && code.get(ValueLayout.JAVA_INT_UNALIGNED, 0) == ELF_MAGIC;
        if (isElf) {
            addSymbols(code);
        } else if (code.byteSize() <= CodeParts.MAX_UNPACKED_BYTES) {
            addDeclared(new String(code.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.ISO_8859_1));
        } else {
            packed(binary, code.byteSize());
        }
    }

    @Override
    public void packed(int binary, long bytes) {
        isComplete = false; // the host cannot see it
        mayAllocate = true;
        mayPrint = true;
    }

    private void addSymbols(MemorySegment elf) {
        long table = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, 40);
        int count = Short.toUnsignedInt(elf.get(ValueLayout.JAVA_SHORT_UNALIGNED, 60));
        int names = Short.toUnsignedInt(elf.get(ValueLayout.JAVA_SHORT_UNALIGNED, 62));
        if (table < 0 || table > elf.byteSize() - (long) count * SECTION_BYTES || names >= count) {
            packed(0, elf.byteSize());
            return;
        }
        Sections sections = new Sections(elf, table, count, content(elf, table + (long) names * SECTION_BYTES));
        Set<String> placed = new TreeSet<>(); // in this file
        for (int i = 0; i < count; i++) {
            long section = table + (long) i * SECTION_BYTES;
            int link = elf.get(ValueLayout.JAVA_INT_UNALIGNED, section + 40);
            if (elf.get(ValueLayout.JAVA_INT_UNALIGNED, section + 4) == SHT_SYMTAB && link >= 0 && link < count) {
                addSymbols(content(elf, section), content(elf, table + (long) link * SECTION_BYTES), sections, placed);
            }
        }
        placed.forEach(name -> add(variables, name));
    }

    /** The sections of a file. */
    private record Sections(MemorySegment elf, long table, int count, MemorySegment names) {
        /** Whether a section lies in the device memory of a module; shared memory does not. */
        boolean holdsVariables(int number) {
            if (number == SHN_UNDEF || number >= count) {
                return false;
            }
            long at = Integer.toUnsignedLong(
                elf.get(ValueLayout.JAVA_INT_UNALIGNED, table + (long) number * SECTION_BYTES));
            String name = text(names, at, MAX_SECTION_NAME);
            return name.startsWith(".nv.global") || name.startsWith(".nv.constant");
        }
    }

    /** The bytes of a section; none when they leave the file. */
    private static MemorySegment content(MemorySegment elf, long section) {
        long at = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 24);
        long bytes = elf.get(ValueLayout.JAVA_LONG_UNALIGNED, section + 32);
        boolean isInside = at >= 0 && bytes >= 0 && at <= elf.byteSize() && bytes <= elf.byteSize() - at;
        return isInside ? elf.asSlice(at, bytes) : MemorySegment.NULL;
    }

    private void addSymbols(MemorySegment symbols, MemorySegment text, Sections sections, Set<String> placed) {
        for (long at = 0; at <= symbols.byteSize() - SYMBOL_BYTES; at += SYMBOL_BYTES) {
            int type = symbols.get(ValueLayout.JAVA_BYTE, at + 4) & 15;
            int other = symbols.get(ValueLayout.JAVA_BYTE, at + 5);
            int section = Short.toUnsignedInt(symbols.get(ValueLayout.JAVA_SHORT_UNALIGNED, at + 6));
            long nameAt = Integer.toUnsignedLong(symbols.get(ValueLayout.JAVA_INT_UNALIGNED, at));
            if (type != STT_OBJECT) {
                String name = text(text, nameAt, LONGEST_CALL + 1);
                mayAllocate |= ALLOCATOR.equals(name);
                mayPrint |= PRINTER.equals(name);
            } else if (section != SHN_UNDEF && (other & MANAGED) != 0) {
                add(managed, text(text, nameAt, Integer.MAX_VALUE));
            } else if (sections.holdsVariables(section)) {
                // Of two variables with one name, the driver finds only one.
                String name = text(text, nameAt, Integer.MAX_VALUE);
                isComplete &= !name.isEmpty() && placed.size() < MAX_NAMES && placed.add(name);
            }
        }
    }

    private void add(Set<String> names, String name) {
        if (names.size() < MAX_NAMES && !name.isEmpty()) {
            names.add(name);
        } else {
            isComplete = false;
        }
    }

    /** A NUL-terminated text, or its first bytes; empty when it does not end in this memory. */
    private static String text(MemorySegment texts, long from, int maxBytes) {
        long end = from;
        while (end < texts.byteSize() && end - from < maxBytes && texts.get(ValueLayout.JAVA_BYTE, end) != 0) {
            end++;
        }
        return end >= texts.byteSize() ? ""
            : new String(texts.asSlice(from, end - from).toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    private void addDeclared(String ptx) {
        mayAllocate |= ALLOCATOR_CALL.matcher(ptx).find();
        mayPrint |= ptx.contains(PRINTER);
        Matcher declaration = DECLARATION.matcher(ptx);
        while (declaration.find()) {
            if (declaration.group(1) != null) {
                continue; // defined in another image
            }
            boolean isManaged = MANAGED_ATTRIBUTE.matcher(declaration.group(2)).find();
            Matcher name = NAME.matcher(ATTRIBUTES.matcher(declaration.group(2)).replaceAll(" ").strip());
            while (name.find()) {
                add(isManaged ? managed : variables, name.group(1));
            }
            isComplete &= declaration.group(3).equals(";") || isLast(ptx, declaration.end());
        }
    }

    /** Whether no further variable follows the initial value that begins there. */
    private static boolean isLast(String ptx, int from) {
        int depth = 0;
        for (int at = from; at < ptx.length(); at++) {
            char c = ptx.charAt(at);
            if (c == ';') {
                return true;
            }
            depth += c == '{' || c == '(' ? 1 : c == '}' || c == ')' ? -1 : 0;
            if (c == ',' && depth == 0) {
                return false;
            }
        }
        return false;
    }
}
