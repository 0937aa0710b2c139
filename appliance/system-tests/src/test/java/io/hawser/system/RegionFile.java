package io.hawser.system;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A region that a broker makes in /dev/shm, accessed as a file, as a hostile guest could. The offsets are those of
 * region.yaml.
 *
 * @param path of the file.
 * @param mebibytes its size.
 * @param slots guest processes at a time.
 */
record RegionFile(Path path, long mebibytes, int slots) {
    private static final Path FOLDER = Path.of("/dev/shm");
    private static final AtomicInteger COUNT = new AtomicInteger();
    private static final long SLOTS_OFFSET = 48;
    private static final long SLOT_STRIDE = 56;
    private static final long GUEST_PID = 8;
    private static final int PAGE_BYTES = 4096;

    /** A region with an unused name, and a size that also fits a container's small /dev/shm. */
    static RegionFile unused(long mebibytes, int slots) {
        try {
            long usable = Files.getFileStore(FOLDER).getUsableSpace() >> 20;
            // A full /dev/shm is noticed only on access, by a fatal signal.
            return new RegionFile(
                FOLDER.resolve("hawser-system-%d-%d".formatted(ProcessHandle.current().pid(), COUNT.incrementAndGet())),
                Math.min(mebibytes, usable / 3), slots);
        } catch (IOException e) {
            throw new UncheckedIOException("no shared memory in " + FOLDER, e);
        }
    }

    /** The broker's settings for this region, under the given name. */
    Map<String, String> settings(String name) {
        String prefix = "hawser.regions." + name + ".";
        return Map.of(prefix + "path", path.toString(), prefix + "size",
            Long.toString(mebibytes << 20), prefix + "vgpu", "default", prefix + "slots", Integer.toString(slots));
    }

    /** Offset of the guest's page of a slot. */
    long guestPage(int slot) throws IOException {
        return number(SLOTS_OFFSET) + slot * number(SLOT_STRIDE);
    }

    /** The slot of a guest process. */
    int slotOf(long pid) throws IOException {
        for (int slot = 0; slot < slots; slot++) {
            if (number(guestPage(slot) + GUEST_PID) == pid) {
                return slot;
            }
        }
        throw new AssertionError("no slot of " + path + " is of process " + pid);
    }

    /** Whether a slot contains nothing of a guest. */
    boolean isFree(int slot) throws IOException {
        return number(guestPage(slot)) == 0 && number(guestPage(slot) + PAGE_BYTES) == 0;
    }

    /** Writes bytes at an offset. */
    void put(long offset, byte[] bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            while (buffer.hasRemaining()) {
                offset += channel.write(buffer, offset);
            }
        }
    }

    private long number(long offset) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            while (bytes.hasRemaining()) {
                if (channel.read(bytes, offset + bytes.position()) < 0) {
                    throw new IOException("the region is shorter than " + (offset + Long.BYTES) + " bytes: " + path);
                }
            }
        }
        return bytes.getLong(0);
    }

    /** Removes the file, which a killed broker leaves behind. */
    void delete() {
        try {
            Files.deleteIfExists(path);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
