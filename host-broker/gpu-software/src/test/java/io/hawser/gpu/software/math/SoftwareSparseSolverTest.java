package io.hawser.gpu.software.math;

import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_INVALID_VALUE;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cusolver.cusolverStatus_t.CUSOLVER_STATUS_NOT_SUPPORTED;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.cusolver.CusolverForm;
import io.hawser.cuda.generated.cusparse.cusparseMatrixType_t;
import io.hawser.gpu.software.device.SoftwareBackend;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What reaches no LAPACK. The program drv_cusolver_sparse checks the results, as LAPACK comes with the archive. */
class SoftwareSparseSolverTest {
    private static final int ROWS = 3;
    private static final int ELEMENTS = 4;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment out = arena.allocate(64);
    private final MemorySegment offsets = arena.allocateFrom(ValueLayout.JAVA_INT, 0, 2, 3, 4);
    private final MemorySegment columns = arena.allocateFrom(ValueLayout.JAVA_INT, 0, 2, 1, 2);
    private final MemorySegment numbers = arena.allocate(ValueLayout.JAVA_DOUBLE, ELEMENTS);
    private SoftwareBackend backend;
    private SoftwareSparseSolver solver;
    private MemorySegment handle;

    @BeforeEach
    void open() {
        backend = new SoftwareBackend(64 << 20, 2);
        assertEquals(0, backend.createContext(0, 0, true, out));
        assertEquals(0, backend.setCurrent(out.get(ValueLayout.JAVA_LONG, 0)));
        solver = new SoftwareSparseSolver(backend, null);
        assertEquals(0, solver.create(out));
        handle = MemorySegment.ofAddress(out.get(ValueLayout.JAVA_LONG, 0));
    }

    @AfterEach
    void close() {
        backend.close();
        arena.close();
    }

    private MemorySegment description(int type, int base) {
        assertEquals(0, solver.describe(type, base, out));
        return MemorySegment.ofAddress(out.get(ValueLayout.JAVA_LONG, 0));
    }

    private int solve(MemorySegment description, int rows, int reorder) {
        return solver.cusolverSpTcsrlsvqr(CusolverForm.D, handle, rows, ELEMENTS, description, numbers.address(),
            offsets.address(), columns.address(), numbers.address(), 0, reorder, numbers.address(), out);
    }

    private int solve(int base) {
        return solve(description(cusparseMatrixType_t.CUSPARSE_MATRIX_TYPE_GENERAL, base), ROWS, 0);
    }

    @Test
    void shouldRefuseRowsAndColumnsOutsideOfTheMatrix() {
        assertEquals(CUSOLVER_STATUS_INVALID_VALUE, solve(1)); // they begin at 0
        for (MemorySegment array : new MemorySegment[] {offsets, columns}) {
            for (int i = 0; i < ELEMENTS; i++) {
                int right = array.getAtIndex(ValueLayout.JAVA_INT, i);
                for (int wrong : new int[] {5, -1, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
                    array.setAtIndex(ValueLayout.JAVA_INT, i, wrong);
                    assertEquals(CUSOLVER_STATUS_INVALID_VALUE, solve(0), "at " + i + ": " + wrong);
                }
                array.setAtIndex(ValueLayout.JAVA_INT, i, right);
            }
        }
    }

    @Test
    void shouldRefuseOtherMatricesThanGeneralOnes() {
        assertEquals(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED, solve(description(
            cusparseMatrixType_t.CUSPARSE_MATRIX_TYPE_SYMMETRIC, 0), ROWS, 0));
    }

    @Test
    void shouldRefuseWrongNumbers() {
        MemorySegment general = description(cusparseMatrixType_t.CUSPARSE_MATRIX_TYPE_GENERAL, 0);
        assertEquals(CUSOLVER_STATUS_INVALID_VALUE, solve(general, 0, 0));
        assertEquals(CUSOLVER_STATUS_INVALID_VALUE, solve(general, ROWS, 4));
        assertEquals(CUSOLVER_STATUS_INVALID_VALUE, solve(general, ROWS, -1));
        assertEquals(CUSOLVER_STATUS_NOT_SUPPORTED, solve(general, 2049, 0));
    }
}
