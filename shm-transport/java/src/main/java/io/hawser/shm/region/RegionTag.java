package io.hawser.shm.region;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.regex.Pattern;

/**
 * 128 random bits in a region's header, by which a broker in a virtual machine finds the right ivshmem device. The
 * creator of the region writes them before its guest gets the region; the broker's format removes them. Any thread.
 *
 * @param hex 32 hexadecimal digits, in lower case; not all 0.
 */
public record RegionTag(String hex) {
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final Pattern FORM = Pattern.compile("[0-9a-f]{" + 2 * RegionLayout.HEADER_TAG_BYTES + "}");
    private static final int SHOWN = 8;

    /**
     * Rejects invalid tags. The message omits the tag: until its region is formatted, the tag gives access to the
     * region.
     */
    public RegionTag {
        // A region without a tag has all 0.
        if (!FORM.matcher(hex).matches() || hex.chars().allMatch(digit -> digit == '0')) {
            throw new IllegalArgumentException("a region's tag must be " + 2 * RegionLayout.HEADER_TAG_BYTES
                + " hexadecimal digits in small letters, not all 0: characters=" + hex.length());
        }
    }

    /** Creates a random tag, which nobody can guess. */
    public static RegionTag random() {
        byte[] bytes = new byte[RegionLayout.HEADER_TAG_BYTES];
        RANDOM.nextBytes(bytes);
        return new RegionTag(HexFormat.of().formatHex(bytes));
    }

    /** Writes the tag into a region's file. */
    public void write(FileChannel region) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(hex));
        while (bytes.hasRemaining()) {
            region.write(bytes, RegionLayout.HEADER_TAG_OFFSET + (long) bytes.position());
        }
    }

    /**
     * Whether a region carries the tag. The tag is read once, because a guest may change it at any time.
     *
     * @param region at least the region's first page.
     */
    public boolean isIn(MemorySegment region) {
        byte[] seen = region.asSlice(RegionLayout.HEADER_TAG_OFFSET, RegionLayout.HEADER_TAG_BYTES)
            .toArray(ValueLayout.JAVA_BYTE);
        return Arrays.equals(seen, HexFormat.of().parseHex(hex));
    }

    /** The beginning of the tag, for logs. */
    @Override
    public String toString() {
        return hex.substring(0, SHOWN) + "...";
    }
}
