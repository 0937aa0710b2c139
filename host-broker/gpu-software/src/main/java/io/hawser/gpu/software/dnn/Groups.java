package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.util.Arrays;

/**
 * A tensor's elements in groups. The elements of a group differ only in some dimensions. The strides of any tensor with
 * these sizes lead from group to group and from member to member.
 */
final class Groups {
    private final long[] groupSizes;
    private final long[] memberSizes;
    private final long groups;
    private final long members;

    /**
     * Groups the elements of a shape.
     *
     * @param kept has the shape's sizes in the dimensions that tell the groups, and 1 in the others.
     */
    Groups(Shape shape, long[] kept) {
        groupSizes = kept.clone();
        memberSizes = new long[kept.length];
        for (int i = 0; i < kept.length; i++) {
            memberSizes[i] = kept[i] == shape.size(i) ? 1 : shape.size(i);
        }
        groups = Arrays.stream(groupSizes).reduce(1, Sizes::multiply);
        members = Arrays.stream(memberSizes).reduce(1, Sizes::multiply);
    }

    long members() {
        return members;
    }

    /** Receives a walk at a group's first element, and one over its members. */
    interface Group {
        void run(Walk group, Walk members);
    }

    /**
     * Visits each group, several at once. The walk over members begins and ends at the first one.
     *
     * @param tensors strides of each tensor, as the walk numbers them. A member's place is the sum of both places.
     */
    void each(Group group, long[]... tensors) {
        Parallel.each(groups, members, (from, to) -> {
            Walk at = new Walk(groupSizes, tensors);
            Walk inside = new Walk(memberSizes, tensors);
            at.seek(from);
            for (long i = from; i < to; i++) {
                group.run(at, inside);
                at.next();
            }
        });
    }
}
