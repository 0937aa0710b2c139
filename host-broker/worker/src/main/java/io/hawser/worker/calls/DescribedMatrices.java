package io.hawser.worker.calls;

import io.hawser.cuda.backend.MatDescriptions;
import io.hawser.cuda.generated.cusparse.HwsSparseMatDescr;
import io.hawser.worker.session.Call;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A library's descriptions of matrices (cusparseMatDescr_t): there are few, so each is made once. Session thread. */
final class DescribedMatrices {
    private static final int MOST_OF_EACH = 4; // values of an enumeration of HwsSparseMatDescr

    private final long[] made = new long[MOST_OF_EACH * MOST_OF_EACH * MOST_OF_EACH * MOST_OF_EACH];

    /** The library's description with a content of HwsSparseMatDescr. The call has ended if there is none. */
    long of(Call call, MemorySegment content, MatDescriptions library) {
        int type = part(call, content, HwsSparseMatDescr.TYPE_OFFSET, MOST_OF_EACH);
        int fillMode = part(call, content, HwsSparseMatDescr.FILL_MODE_OFFSET, 2);
        int diagType = part(call, content, HwsSparseMatDescr.DIAG_TYPE_OFFSET, 2);
        int indexBase = part(call, content, HwsSparseMatDescr.INDEX_BASE_OFFSET, 2);
        if (call.isRejected()) {
            return 0;
        }
        int at = ((type * MOST_OF_EACH + fillMode) * MOST_OF_EACH + diagType) * MOST_OF_EACH + indexBase;
        if (made[at] == 0) {
            MemorySegment out = call.scratch(Long.BYTES);
            int status = library.describe(type, fillMode, diagType, indexBase, out);
            if (status != 0) {
                call.fail(status);
                return 0;
            }
            made[at] = out.get(ValueLayout.JAVA_LONG, 0);
        }
        return made[at];
    }

    private static int part(Call call, MemorySegment content, long offset, int values) {
        int value = content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
        if (value < 0 || value >= values) {
            call.fatal("a description of a matrix has known values only: offset=" + offset + " value=" + value);
            return 0;
        }
        return value;
    }
}
