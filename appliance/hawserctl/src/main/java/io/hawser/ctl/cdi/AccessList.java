package io.hawser.ctl.cdi;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Gives a user access to a file beside its owner and group, by the file's access control list. The file of a region
 * keeps its owner this way: the broker serves only files of its own user or of root.
 */
final class AccessList {
    // Linux linux/posix_acl_xattr.h and linux/posix_acl.h: a version, then entries of tag, permissions and id, all in
    // little-endian order.
    private static final String ATTRIBUTE = "system.posix_acl_access";
    private static final int VERSION = 2;
    private static final int ENTRY_BYTES = 8;
    private static final short USER_OBJ = 0x01;
    private static final short USER = 0x02;
    private static final short GROUP_OBJ = 0x04;
    private static final short MASK = 0x10;
    private static final short OTHER = 0x20;
    private static final int NO_ID = -1;
    private static final short READ_WRITE = 6;
    /** Linux linux/limits.h, XATTR_SIZE_MAX. */
    private static final int MAX_BYTES = 65536;
    private static final int ENODATA = 61; // Linux asm-generic/errno.h

    private static final StructLayout STATE = Linker.Option.captureStateLayout();
    private static final ValueLayout.OfInt ERRNO = (ValueLayout.OfInt) STATE.select(
        MemoryLayout.PathElement.groupElement("errno"));
    private static final long ERRNO_OFFSET = STATE.byteOffset(MemoryLayout.PathElement.groupElement("errno"));
    private static final MethodHandle GET = function("getxattr", FunctionDescriptor.of(ValueLayout.JAVA_LONG,
        ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG));
    private static final MethodHandle SET = function("setxattr", FunctionDescriptor.of(ValueLayout.JAVA_INT,
        ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT));

    /** An entry; {@code id} is a user's or a group's, or {@link #NO_ID}. */
    private record Entry(short tag, short permissions, int id) {}

    private AccessList() {
    }

    /** Lets a user read and write a file. */
    static void grant(Path file, int user) throws IOException {
        List<Entry> entries = without(read(file), user);
        entries.add(new Entry(USER, READ_WRITE, user));
        write(file, entries);
    }

    /** Withdraws what {@link #grant} has given. */
    static void withdraw(Path file, int user) throws IOException {
        List<Entry> entries = read(file);
        List<Entry> rest = without(entries, user);
        if (rest.size() < entries.size()) {
            write(file, rest);
        }
    }

    /** Whether the list names a user. */
    static boolean names(Path file, int user) throws IOException {
        return read(file).stream().anyMatch(entry -> entry.tag == USER && entry.id == user);
    }

    private static List<Entry> without(List<Entry> entries, int user) {
        return new ArrayList<>(entries.stream().filter(entry -> entry.tag != USER || entry.id != user).toList());
    }

    /** The entries except the mask, which {@link #write} computes. */
    private static List<Entry> read(Path file) throws IOException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            MemorySegment value = arena.allocate(MAX_BYTES);
            long bytes = (long) GET.invokeExact(state, arena.allocateFrom(file.toString()),
                arena.allocateFrom(ATTRIBUTE), value, (long) MAX_BYTES);
            int problem = state.get(ERRNO, ERRNO_OFFSET);
            if (bytes < 0 && problem != ENODATA) {
                throw new IOException("its access control list cannot be read: errno=" + problem);
            }
            return bytes < 0 ? ofMode((int) Files.getAttribute(file, "unix:mode")) : entries(value.asSlice(0, bytes));
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a C function throws nothing", e);
        }
    }

    private static List<Entry> ofMode(int mode) {
        return List.of(new Entry(USER_OBJ, (short) (mode >> 6 & 7), NO_ID),
            new Entry(GROUP_OBJ, (short) (mode >> 3 & 7), NO_ID), new Entry(OTHER, (short) (mode & 7), NO_ID));
    }

    private static List<Entry> entries(MemorySegment value) throws IOException {
        ByteBuffer buffer = value.asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.remaining() < Integer.BYTES || buffer.getInt() != VERSION) {
            throw new IOException("its access control list must have version " + VERSION);
        }
        List<Entry> entries = new ArrayList<>();
        while (buffer.remaining() >= ENTRY_BYTES) {
            Entry entry = new Entry(buffer.getShort(), buffer.getShort(), buffer.getInt());
            if (entry.tag != MASK) {
                entries.add(entry);
            }
        }
        return entries;
    }

    private static void write(Path file, List<Entry> entries) throws IOException {
        List<Entry> all = new ArrayList<>(entries);
        if (all.stream().anyMatch(entry -> entry.id != NO_ID)) {
            int mask = all.stream().filter(entry -> entry.tag != USER_OBJ && entry.tag != OTHER)
                .mapToInt(Entry::permissions).reduce(0, (a, b) -> a | b);
            all.add(new Entry(MASK, (short) mask, NO_ID));
        }
        // The kernel requires this order.
        all.sort(Comparator.comparingInt(Entry::tag).thenComparing(Entry::id, Integer::compareUnsigned));
        ByteBuffer buffer = ByteBuffer.allocate(Integer.BYTES + ENTRY_BYTES * all.size())
            .order(ByteOrder.LITTLE_ENDIAN).putInt(VERSION);
        all.forEach(entry -> buffer.putShort(entry.tag).putShort(entry.permissions).putInt(entry.id));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(STATE);
            MemorySegment value = arena.allocateFrom(ValueLayout.JAVA_BYTE, buffer.array());
            int status = (int) SET.invokeExact(state, arena.allocateFrom(file.toString()),
                arena.allocateFrom(ATTRIBUTE), value, value.byteSize(), 0);
            if (status != 0) {
                throw new IOException("its access control list cannot be changed: errno="
                    + state.get(ERRNO, ERRNO_OFFSET));
            }
        } catch (IOException | RuntimeException | Error e) {
            throw e;
        } catch (Throwable e) {
            throw new AssertionError("a C function throws nothing", e);
        }
    }

    private static MethodHandle function(String name, FunctionDescriptor descriptor) {
        Linker linker = Linker.nativeLinker();
        return linker.downcallHandle(linker.defaultLookup().findOrThrow(name), descriptor,
            Linker.Option.captureCallState("errno"));
    }
}
