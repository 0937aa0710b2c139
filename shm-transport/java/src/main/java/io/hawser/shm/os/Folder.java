package io.hawser.shm.os;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Optional;

/**
 * An open folder, in which files are found, created and removed by single names. No call follows a link. The object
 * refers to the same folder even when its path is renamed or replaced. Any thread; closed once.
 */
public final class Folder implements AutoCloseable {
    // Linux asm-generic/fcntl.h and linux/fcntl.h
    private static final int O_CREAT = 0100;
    private static final int O_EXCL = 0200;
    private static final int O_RDWR = 2;
    private static final int O_DIRECTORY = 0200000;
    private static final int O_NOFOLLOW = 0400000;
    private static final int O_CLOEXEC = 02000000;
    private static final int O_PATH = 010000000;
    private static final int AT_FDCWD = -100;
    private static final int AT_REMOVEDIR = 0x200;
    // Linux asm-generic/errno-base.h
    private static final int ENOENT = 2;
    private static final int EEXIST = 17;
    private static final int OWNER_ONLY = 0600;
    private static final int OWNER_ONLY_FOLDER = 0700;

    private static final MethodHandle OPEN = Libc.findVariadic(3, "openat", Libc.INT, Libc.INT, Libc.ADDRESS, Libc.INT,
        Libc.INT);
    private static final MethodHandle MAKE = Libc.find("mkdirat", Libc.INT, Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle UNLINK = Libc.find("unlinkat", Libc.INT, Libc.INT, Libc.ADDRESS, Libc.INT);
    private static final MethodHandle LINK = Libc.find("linkat", Libc.INT, arguments());

    private final int fd;

    private Folder(int fd) {
        this.fd = fd;
    }

    private static MemoryLayout[] arguments() {
        return new MemoryLayout[] {Libc.INT, Libc.ADDRESS, Libc.INT, Libc.ADDRESS, Libc.INT};
    }

    /**
     * Opens a folder. Follows links in the path, so it is only for paths that the machine's administrator chose.
     *
     * @throws IOException when the folder does not exist.
     */
    public static Folder open(Path path) throws IOException {
        return new Folder(openAt(AT_FDCWD, path.toString(), O_PATH | O_DIRECTORY, 0));
    }

    /**
     * Opens a folder in this folder.
     *
     * @throws IOException when the name is a link, or not a folder.
     */
    public Folder folder(String name) throws IOException {
        return new Folder(openAt(fd, single(name), O_PATH | O_DIRECTORY | O_NOFOLLOW, 0));
    }

    /** Finds the file of a name without opening the file; a link is not followed. Empty without a file. */
    public Optional<PinnedFile> find(String name) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        int found = tryOpen(fd, single(name), O_PATH | O_NOFOLLOW, 0);
        if (found < 0 && scratch.errno() == ENOENT) {
            return Optional.empty();
        }
        return Optional.of(new PinnedFile(checked(found, name)));
    }

    /**
     * Creates an empty file with access only for its owner, and opens it for reading and writing.
     *
     * @return a descriptor, which the caller closes.
     * @throws IOException when the name exists, even as a link.
     */
    public int create(String name) throws IOException {
        return openAt(fd, single(name), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, OWNER_ONLY);
    }

    /**
     * Creates a folder in this folder with access only for its owner, and opens it.
     *
     * @throws IOException when the name exists.
     */
    public Folder make(String name) throws IOException {
        call(MAKE, "a folder must be made: name=" + single(name), name, OWNER_ONLY_FOLDER);
        Folder made = folder(name);
        FileStatus status = made.status();
        if (!status.isOwn() || status.isWritableByOthers()) {
            made.close();
            throw new IOException("a folder that was just made must be this process' own: name=" + name);
        }
        return made;
    }

    /** Removes a name, unless it does not exist. Never removes a folder. */
    public void remove(String name) throws IOException {
        call(UNLINK, "a name must be removed: name=" + single(name), name, 0);
    }

    /** Removes an empty folder, unless it does not exist. */
    public void removeFolder(String name) throws IOException {
        call(UNLINK, "a folder must be removed: name=" + single(name), name, AT_REMOVEDIR);
    }

    /**
     * Gives a file of this folder another name, in another folder of the same file system. Never replaces another
     * file's name.
     *
     * @return false when the other name exists.
     */
    public boolean link(String name, Folder target, String other) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            int result = (int) LINK.invokeExact(scratch.state, fd, arena.allocateFrom(single(name)), target.fd,
                arena.allocateFrom(single(other)), 0);
            if (result < 0 && scratch.errno() != EEXIST) {
                throw Libc.failure("a file must get its name: name=" + other, scratch.errno());
            }
            return result == 0;
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    /** A path to a name in this folder, for calls that need a path; valid until {@link #close}. */
    public Path path(String name) {
        return Path.of("/proc/self/fd/" + fd, single(name));
    }

    /** Owner and permissions of the folder itself. */
    public FileStatus status() throws IOException {
        return FileStatus.of(fd);
    }

    /** The magic number of the folder's file system, as in statfs(2). */
    public long fileSystem() throws IOException {
        return Descriptors.fileSystem(fd);
    }

    @Override
    public void close() {
        Descriptors.close(fd);
    }

    private static String single(String name) {
        if (name.isEmpty() || name.equals(".") || name.equals("..") || name.indexOf('/') >= 0
            || name.indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a name in a folder must be one name: name=" + name);
        }
        return name;
    }

    private void call(MethodHandle function, String rule, String name, int last) throws IOException {
        Libc.Scratch scratch = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            int result = (int) function.invokeExact(scratch.state, fd, arena.allocateFrom(name), last);
            if (result < 0 && (function != UNLINK || scratch.errno() != ENOENT)) {
                throw Libc.failure(rule, scratch.errno());
            }
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }

    private static int openAt(int folder, String name, int flags, int mode) throws IOException {
        return checked(tryOpen(folder, name, flags, mode), name);
    }

    private static int checked(int fd, String name) throws IOException {
        if (fd < 0) {
            throw Libc.failure("a file must open: name=" + name, Libc.scratch().errno());
        }
        return fd;
    }

    private static int tryOpen(int folder, String name, int flags, int mode) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) OPEN.invokeExact(Libc.scratch().state, folder, arena.allocateFrom(name), flags | O_CLOEXEC,
                mode);
        } catch (Throwable e) {
            throw Libc.unexpected(e);
        }
    }
}
