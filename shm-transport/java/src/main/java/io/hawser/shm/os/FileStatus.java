package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * The kernel's data about a file, read from a descriptor. A name may refer to another file a moment later; a descriptor
 * always refers to the same file.
 *
 * @param device number of the file system.
 * @param inode number of the file in its file system.
 * @param links number of names of the file.
 * @param mode type and permissions, as {@code st_mode}.
 * @param owner user id.
 * @param bytes length in bytes.
 */
public record FileStatus(long device, long inode, long links, int mode, int owner, long bytes) {
    // Linux x86-64 asm/stat.h, struct stat
    private static final int STAT_BYTES = 144;
    private static final int DEVICE_OFFSET = 0;
    private static final int INODE_OFFSET = 8;
    private static final int LINKS_OFFSET = 16;
    private static final int MODE_OFFSET = 24;
    private static final int OWNER_OFFSET = 28;
    private static final int BYTES_OFFSET = 48;
    // Linux linux/stat.h
    private static final int TYPE = 0170000;
    private static final int SOCKET = 0140000;
    private static final int REGULAR = 0100000;
    private static final int FOLDER = 0040000;
    private static final int GROUP_OR_OTHERS_WRITE = 0022;
    private static final int OTHERS = 0007;
    private static final int PERMISSIONS = 07777;
    private static final int ROOT = 0;

    private static final MethodHandle STAT = Libc.find("fstat", Libc.INT, Libc.INT, Libc.ADDRESS);
    private static final MethodHandle USER = Libc.find("geteuid", Libc.INT);

    /**
     * Reads the status of an open file.
     *
     * @param fd a descriptor, possibly with {@code O_PATH}.
     */
    public static FileStatus of(int fd) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment stat = arena.allocate(STAT_BYTES, Long.BYTES);
            int result = (int) STAT.invokeExact(scratch.state, fd, stat);
            if (result < 0) {
                throw Libc.failure("a descriptor must have a status: fd=" + fd, scratch.errno());
            }
            return new FileStatus(stat.get(ValueLayout.JAVA_LONG, DEVICE_OFFSET),
                stat.get(ValueLayout.JAVA_LONG, INODE_OFFSET), stat.get(ValueLayout.JAVA_LONG, LINKS_OFFSET),
                stat.get(ValueLayout.JAVA_INT, MODE_OFFSET), stat.get(ValueLayout.JAVA_INT, OWNER_OFFSET),
                stat.get(ValueLayout.JAVA_LONG, BYTES_OFFSET));
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** The effective user id of this process. */
    public static int user() {
        try {
            return (int) USER.invokeExact(Libc.scratch().state);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** Whether it is a regular file, not a link, folder, device, FIFO or socket. */
    public boolean isRegular() {
        return (mode & TYPE) == REGULAR;
    }

    /** Whether the file is a Unix socket. */
    public boolean isSocket() {
        return (mode & TYPE) == SOCKET;
    }

    /** Whether the file is a folder. */
    public boolean isFolder() {
        return (mode & TYPE) == FOLDER;
    }

    /** Whether the file belongs to this process's effective user. */
    public boolean isOwn() {
        return owner == user();
    }

    /** Whether the file belongs to this process's effective user or root. */
    public boolean isOwnOrRoots() {
        return isOwn() || owner == ROOT;
    }

    /** Whether users other than owner and group have any right to the file. */
    public boolean isOpenToOthers() {
        return (mode & OTHERS) != 0;
    }

    /** Whether users other than the owner may write to the file or change the folder. */
    public boolean isWritableByOthers() {
        return (mode & GROUP_OR_OTHERS_WRITE) != 0;
    }

    /** Permissions without the type. */
    public int permissions() {
        return mode & PERMISSIONS;
    }

    /** Whether both statuses are of the same file. */
    public boolean isSameFile(FileStatus other) {
        return device == other.device && inode == other.inode;
    }
}
