package io.hawser.cuda.backend;

import io.hawser.cuda.generated.nccl.HwsNcclMember;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;

/**
 * A member of a new communicator. Either an id names the communicator, or the member's color chooses a part of one that
 * exists.
 *
 * @param context the native context of its device.
 * @param parent the communicator to split, of {@link NcclBackend#make}; 0: the id names the communicator.
 * @param ranks all members by this id, at least one; 0 for a split.
 * @param rank its place among them, below {@code ranks}; 0 for a split.
 * @param color the part of the parent; {@code NCCL_SPLIT_NOCOLOR}: none.
 * @param key orders the members of a part.
 * @param settings {@code minCTAs}, {@code maxCTAs}, {@code cgaClusterSize} and {@code splitShare} of ncclConfig_t.
 * @param id 128 bytes in hexadecimal; empty: all members of the communicator are made at once, in this process.
 */
public record NcclMember(long context, long parent, int ranks, int rank, int color, int key, Settings settings,
    String id) {
    /** Bytes of an id. nccl.h, NCCL_UNIQUE_ID_BYTES */
    public static final int ID_BYTES = 128;
    /** The color of no part. nccl.h, NCCL_SPLIT_NOCOLOR */
    public static final int NO_COLOR = -1;
    /** The value of a setting that a program has not set. nccl.h, NCCL_CONFIG_UNDEF_INT */
    public static final int UNDEFINED = Integer.MIN_VALUE;

    private static final String NO_ID = "00".repeat(ID_BYTES);

    /** What a program has chosen; {@link #UNDEFINED} for nothing. */
    public record Settings(int minCtas, int maxCtas, int cgaClusterSize, int splitShare) {
    }

    /**
     * Reads a member.
     *
     * @param content HwsNcclMember.
     * @param context the resolved context.
     * @param parent the resolved parent, 0 for none.
     */
    public static NcclMember of(MemorySegment content, long context, long parent) {
        byte[] id = content.asSlice(HwsNcclMember.ID_OFFSET, ID_BYTES).toArray(ValueLayout.JAVA_BYTE);
        String text = HexFormat.of().formatHex(id);
        return new NcclMember(context, parent, number(content, HwsNcclMember.RANKS_OFFSET),
            number(content, HwsNcclMember.RANK_OFFSET), number(content, HwsNcclMember.COLOR_OFFSET),
            number(content, HwsNcclMember.KEY_OFFSET),
            new Settings(number(content, HwsNcclMember.MIN_CTAS_OFFSET), number(content, HwsNcclMember.MAX_CTAS_OFFSET),
                number(content, HwsNcclMember.CGA_CLUSTER_SIZE_OFFSET),
                number(content, HwsNcclMember.SPLIT_SHARE_OFFSET)),
            text.equals(NO_ID) ? "" : text);
    }

    private static int number(MemorySegment content, long offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    /** Whether the member comes from the guest's library: nothing else is sent by it. */
    public boolean isValid() {
        return parent != 0 ? color >= NO_COLOR : ranks >= 1 && rank >= 0 && rank < ranks;
    }

    /** Whether the member only takes part in the split of its parent. */
    public boolean isAbsent() {
        return parent != 0 && color == NO_COLOR;
    }
}
