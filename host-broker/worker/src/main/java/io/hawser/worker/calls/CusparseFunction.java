package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cusparse.HwsSparseKind.HWS_SPARSE_DN_MAT;
import static io.hawser.cuda.generated.cusparse.HwsSparseKind.HWS_SPARSE_DN_VEC;
import static io.hawser.cuda.generated.cusparse.HwsSparseKind.HWS_SPARSE_NONE;
import static io.hawser.cuda.generated.cusparse.HwsSparseKind.HWS_SPARSE_SP_MAT;
import static io.hawser.cuda.generated.cusparse.HwsSparseKind.HWS_SPARSE_SP_VEC;

import io.hawser.cuda.backend.CusparseBackend.Operation;

/** The generic functions of cuSPARSE, in the order of HwsSparseFunction: what they need, and how they are called. */
enum CusparseFunction {
    AXPBY(HWS_SPARSE_SP_VEC, HWS_SPARSE_NONE, HWS_SPARSE_DN_VEC, "AB", null, "R"),
    GATHER(HWS_SPARSE_DN_VEC, HWS_SPARSE_NONE, HWS_SPARSE_SP_VEC, "", null, "R"),
    SCATTER(HWS_SPARSE_SP_VEC, HWS_SPARSE_NONE, HWS_SPARSE_DN_VEC, "", null, "R"),
    ROT(HWS_SPARSE_SP_VEC, HWS_SPARSE_NONE, HWS_SPARSE_DN_VEC, "AB", null, "R"),
    SPVV(HWS_SPARSE_SP_VEC, HWS_SPARSE_DN_VEC, HWS_SPARSE_NONE, "A", null, "RA"),
    SPMV(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_VEC, HWS_SPARSE_DN_VEC, "AB", null, "R"),
    SPMV_PREPROCESS(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_VEC, HWS_SPARSE_DN_VEC, "AB", null, "A"),
    SPMM(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, "AB", null, "R"),
    SPMM_PREPROCESS(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, "AB", null, "A"),
    SDDMM(HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_SP_MAT, "AB", null, "R"),
    SDDMM_PREPROCESS(HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_SP_MAT, "AB", null, "A"),
    SPSV_ANALYSIS(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_VEC, HWS_SPARSE_DN_VEC, "A", Operation.SPSV, "A"),
    SPSV_SOLVE(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_VEC, HWS_SPARSE_DN_VEC, "A", Operation.SPSV, "R"),
    SPSV_UPDATE(HWS_SPARSE_NONE, HWS_SPARSE_NONE, HWS_SPARSE_NONE, "", Operation.SPSV, "R"),
    SPSM_ANALYSIS(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, "A", Operation.SPSM, "A"),
    SPSM_SOLVE(HWS_SPARSE_SP_MAT, HWS_SPARSE_DN_MAT, HWS_SPARSE_DN_MAT, "A", Operation.SPSM, "R"),
    SPSM_UPDATE(HWS_SPARSE_NONE, HWS_SPARSE_NONE, HWS_SPARSE_NONE, "", Operation.SPSM, "R"),
    SPGEMM_WORK_ESTIMATION(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "AB", Operation.SPGEMM, "A"),
    SPGEMM_ESTIMATE_MEMORY(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "AB", Operation.SPGEMM, "A"),
    SPGEMM_COMPUTE(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "AB", Operation.SPGEMM, "A"),
    SPGEMM_COPY(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "AB", Operation.SPGEMM, "R"),
    SPGEMM_PRODUCTS(HWS_SPARSE_NONE, HWS_SPARSE_NONE, HWS_SPARSE_NONE, "", Operation.SPGEMM, "A"),
    SPARSE_TO_DENSE(HWS_SPARSE_SP_MAT, HWS_SPARSE_NONE, HWS_SPARSE_DN_MAT, "", null, "R"),
    DENSE_TO_SPARSE_ANALYSIS(HWS_SPARSE_DN_MAT, HWS_SPARSE_NONE, HWS_SPARSE_SP_MAT, "", null, "A"),
    DENSE_TO_SPARSE_CONVERT(HWS_SPARSE_DN_MAT, HWS_SPARSE_NONE, HWS_SPARSE_SP_MAT, "", null, "R"),
    SPGEMM_REUSE_WORK_ESTIMATION(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "", Operation.SPGEMM, "A"),
    SPGEMM_REUSE_NNZ(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "", Operation.SPGEMM, "A"),
    SPGEMM_REUSE_COPY(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "", Operation.SPGEMM, "A"),
    SPGEMM_REUSE_COMPUTE(HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, HWS_SPARSE_SP_MAT, "AB", Operation.SPGEMM, "R");

    private static final CusparseFunction[] ALL = values();

    private final int[] kinds;
    private final boolean hasAlpha;
    private final boolean hasBeta;
    private final Operation operation;
    private final boolean runs;
    private final boolean answers;

    /**
     * @param a kind of the first operand, of HwsSparseKind.
     * @param b kind of the second operand.
     * @param c kind of what the function writes.
     * @param numbers A: it has the first number, B: also the second one.
     * @param operation the kind of its descriptor of an operation; null for none.
     * @param how R: it runs in stream order; A: its caller waits for what it returns.
     */
    CusparseFunction(int a, int b, int c, String numbers, Operation operation, String how) {
        kinds = new int[] {a, b, c};
        hasAlpha = numbers.contains("A");
        hasBeta = numbers.contains("B");
        this.operation = operation;
        runs = how.contains("R");
        answers = how.contains("A");
    }

    /** The function with a number; null for none. */
    static CusparseFunction of(int number) {
        return number < 1 || number > ALL.length ? null : ALL[number - 1];
    }

    int kind(int operand) {
        return kinds[operand];
    }

    boolean hasAlpha() {
        return hasAlpha;
    }

    boolean hasBeta() {
        return hasBeta;
    }

    Operation operation() {
        return operation;
    }

    boolean runs() {
        return runs;
    }

    boolean answers() {
        return answers;
    }

    /** Whether its numbers have the type of the first vector. */
    boolean isOfVectors() {
        return this == AXPBY || this == ROT;
    }

    boolean isUpdate() {
        return this == SPSV_UPDATE || this == SPSM_UPDATE;
    }

    /** Whether it finds out how many elements the matrix that it makes has. */
    boolean makesElements() {
        return this == SPGEMM_COMPUTE || this == SPGEMM_REUSE_NNZ || this == DENSE_TO_SPARSE_ANALYSIS;
    }
}
