package io.hawser.gpu.software.nccl;

import io.hawser.cuda.backend.NcclMember;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;

/** The part of a communicator that a rank becomes a member of: the ranks tell each other color, key and an id. */
final class Split {
    private static final long KEY_OFFSET = 4;
    private static final long ID_OFFSET = 8;
    private static final long BYTES = ID_OFFSET + NcclMember.ID_BYTES;

    private final List<Integer> members; // ranks of the parent, in their new order
    private final int number;
    private final UniqueId id;

    private Split(List<Integer> members, int number, UniqueId id) {
        this.members = members;
        this.number = number;
        this.id = id;
    }

    /** Ranks of the part. */
    int ranks() {
        return members.size();
    }

    /** The place of the rank among them. */
    int number() {
        return number;
    }

    /** By which they join; null for a value that is none. */
    UniqueId id() {
        return id;
    }

    /**
     * Asks all ranks of the parent, which do the same.
     *
     * @param own an id, which the part uses if this rank becomes its first.
     * @return null for a rank without a part.
     */
    static Split of(Rank parent, NcclMember member, UniqueId own, Executor threads) throws IOException {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment all = arena.allocate(BYTES * parent.ranks(), Long.BYTES);
            MemorySegment mine = all.asSlice(parent.number() * BYTES, BYTES);
            mine.set(ValueLayout.JAVA_INT, 0, member.color());
            mine.set(ValueLayout.JAVA_INT, KEY_OFFSET, member.key());
            mine.asSlice(ID_OFFSET).copyFrom(MemorySegment.ofArray(own.bytes()));
            Exchange exchange = new Exchange(parent);
            IntStream.range(0, parent.ranks()).filter(other -> other != parent.number())
                .forEach(other -> exchange.send(other, mine).receive(other, all.asSlice(other * BYTES, BYTES)));
            exchange.run(threads);
            if (member.isAbsent()) {
                return null;
            }
            List<Integer> members = IntStream.range(0, parent.ranks()).boxed()
                .filter(rank -> all.get(ValueLayout.JAVA_INT, rank * BYTES) == member.color())
                .sorted(Comparator.comparingInt(rank -> all.get(ValueLayout.JAVA_INT, rank * BYTES + KEY_OFFSET)))
                .toList();
            return new Split(members, members.indexOf(parent.number()), UniqueId.of(all.asSlice(
                members.getFirst() * BYTES + ID_OFFSET, NcclMember.ID_BYTES).toArray(ValueLayout.JAVA_BYTE)));
        }
    }
}
