package io.hawser.gpu.software.math;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A function of cuBLAS that a function of cblas.h computes: both have the same arguments in the same order, apart from
 * the first ones.
 *
 * @param name that of cblas.h, without prefix and type.
 * @param ordered whether its first argument is the order of elements.
 * @param arguments cuBLAS's, after the handle.
 */
record Routine(String name, boolean ordered, List<Argument> arguments) {
    /** The kinds of arguments. */
    enum Kind {
        OPERATION,
        REAL_OPERATION,
        HERMITIAN_OPERATION,
        FILL,
        DIAGONAL,
        SIDE,
        DIMENSION,
        BAND,
        INCREMENT,
        LEADING,
        SCALAR,
        REAL,
        NUMBERS,
        ADDRESS,
        ADDRESSES,
        STRIDE,
        BATCH,
        RESULT
    }

    /**
     * An argument.
     *
     * @param rows for a leading dimension, the least value: a sum, or {@code name?sum:sum} by whether one is not 0.
     */
    record Argument(Kind kind, String name, String rows) {
    }

    private static final Map<String, Kind> NAMES = new HashMap<>();

    static {
        names(Kind.OPERATION, "trans", "transa", "transb");
        names(Kind.REAL_OPERATION, "transT");
        names(Kind.HERMITIAN_OPERATION, "transC");
        names(Kind.FILL, "uplo");
        names(Kind.DIAGONAL, "diag");
        names(Kind.SIDE, "side");
        names(Kind.DIMENSION, "m", "n", "k");
        names(Kind.BAND, "kl", "ku", "kb");
        names(Kind.INCREMENT, "incx", "incy");
        names(Kind.LEADING, "lda", "ldb", "ldc");
        names(Kind.SCALAR, "alpha", "beta");
        names(Kind.REAL, "ralpha", "rbeta", "c", "s");
        names(Kind.NUMBERS, "param");
        names(Kind.ADDRESS, "A", "B", "C", "x", "y", "AP");
        names(Kind.ADDRESSES, "A[]", "B[]", "C[]", "x[]", "y[]");
        names(Kind.STRIDE, "strideA", "strideB", "strideC", "stridex", "stridey");
        names(Kind.BATCH, "batch");
        names(Kind.RESULT, "result");
    }

    private static void names(Kind kind, String... names) {
        for (String name : names) {
            NAMES.put(name, kind);
        }
    }

    /** Functions of vectors, in the order of {@link #parse}'s text. */
    private static final String VECTORS = """
        axpy_v2=axpy n alpha x incx y incy
        scal_v2=scal n alpha x incx
        copy_v2=copy n x incx y incy
        swap_v2=swap n x incx y incy
        rot_v2=rot n x incx y incy c s
        rotm_v2=rotm n x incx y incy param
        dot_v2=dot n x incx y incy result
        dotu_v2=dotu n x incx y incy result
        dotc_v2=dotc n x incx y incy result
        nrm2_v2=nrm2 n x incx result
        asum_v2=asum n x incx result
        amax_v2=amax n x incx result
        amin_v2=amin n x incx result
        """;
    /** Functions of matrices, whose first argument of cblas.h is the order. */
    private static final String MATRICES = """
        gemv_v2=gemv trans m n alpha A lda:m x incx beta y incy
        gbmv_v2=gbmv trans m n kl ku alpha A lda:kl+ku+1 x incx beta y incy
        ger_v2=ger m n alpha x incx y incy A lda:m
        geru_v2=geru m n alpha x incx y incy A lda:m
        gerc_v2=gerc m n alpha x incx y incy A lda:m
        hbmv_v2=hbmv uplo n kb alpha A lda:kb+1 x incx beta y incy
        sbmv_v2=sbmv uplo n kb alpha A lda:kb+1 x incx beta y incy
        hemv_v2=hemv uplo n alpha A lda:n x incx beta y incy
        symv_v2=symv uplo n alpha A lda:n x incx beta y incy
        hpmv_v2=hpmv uplo n alpha AP x incx beta y incy
        spmv_v2=spmv uplo n alpha AP x incx beta y incy
        her_v2=her uplo n ralpha x incx A lda:n
        syr_v2=syr uplo n alpha x incx A lda:n
        her2_v2=her2 uplo n alpha x incx y incy A lda:n
        syr2_v2=syr2 uplo n alpha x incx y incy A lda:n
        hpr_v2=hpr uplo n ralpha x incx AP
        spr_v2=spr uplo n alpha x incx AP
        hpr2_v2=hpr2 uplo n alpha x incx y incy AP
        spr2_v2=spr2 uplo n alpha x incx y incy AP
        tbmv_v2=tbmv uplo trans diag n kb A lda:kb+1 x incx
        tbsv_v2=tbsv uplo trans diag n kb A lda:kb+1 x incx
        tpmv_v2=tpmv uplo trans diag n AP x incx
        tpsv_v2=tpsv uplo trans diag n AP x incx
        trmv_v2=trmv uplo trans diag n A lda:n x incx
        trsv_v2=trsv uplo trans diag n A lda:n x incx
        gemm_v2=gemm transa transb m n k alpha A lda:transa?k:m B ldb:transb?n:k beta C ldc:m
        gemm3m=gemm3m transa transb m n k alpha A lda:transa?k:m B ldb:transb?n:k beta C ldc:m
        hemm_v2=hemm side uplo m n alpha A lda:side?n:m B ldb:m beta C ldc:m
        symm_v2=symm side uplo m n alpha A lda:side?n:m B ldb:m beta C ldc:m
        herk_v2=herk uplo transC n k ralpha A lda:transC?k:n rbeta C ldc:n
        syrk_v2=syrk uplo transT n k alpha A lda:transT?k:n beta C ldc:n
        her2k_v2=her2k uplo transC n k alpha A lda:transC?k:n B ldb:transC?k:n rbeta C ldc:n
        syr2k_v2=syr2k uplo transT n k alpha A lda:transT?k:n B ldb:transT?k:n beta C ldc:n
        trsm_v2=trsm side uplo trans diag m n alpha A lda:side?n:m B ldb:m
        trmm_v2=trmm side uplo trans diag m n alpha A lda:side?n:m B ldb:m C ldc:m
        gemmStridedBatched=gemm transa transb m n k alpha A lda:transa?k:m strideA B ldb:transb?n:k strideB beta \
        C ldc:m strideC batch
        gemmBatched=gemm transa transb m n k alpha A[] lda:transa?k:m B[] ldb:transb?n:k beta C[] ldc:m batch
        gemvStridedBatched=gemv trans m n alpha A lda:m strideA x incx stridex beta y incy stridey batch
        gemvBatched=gemv trans m n alpha A[] lda:m x[] incx beta y[] incy batch
        trsmBatched=trsm side uplo trans diag m n alpha A[] lda:side?n:m B[] ldb:m batch
        """;

    /** The routines by the backend's methods, for example cublasTgemm_v2; cublasITamax_v2 for indices. */
    static final Map<String, Routine> ALL = new HashMap<>();

    static {
        parse(VECTORS, false);
        parse(MATRICES, true);
    }

    private static void parse(String table, boolean ordered) {
        for (String line : table.split("\n")) {
            String[] words = line.split(" ");
            String[] names = words[0].split("=");
            List<Argument> arguments = new ArrayList<>();
            for (int i = 1; i < words.length; i++) {
                String[] parts = words[i].split(":", 2);
                arguments.add(new Argument(NAMES.get(parts[0]), parts[0], parts.length > 1 ? parts[1] : null));
            }
            boolean isIndex = names[1].startsWith("am");
            ALL.put((isIndex ? "cublasIT" : "cublasT") + names[0], new Routine(names[1], ordered, arguments));
        }
    }

    /** Whether its functions return a number. */
    boolean isReduction() {
        return arguments.getLast().kind == Kind.RESULT;
    }

    /** The least leading dimension by its rule, for the values of the numbers so far and to come. */
    static long least(String rule, Map<String, Long> numbers) {
        int question = rule.indexOf('?');
        if (question >= 0) {
            int colon = rule.indexOf(':');
            return least(numbers.get(rule.substring(0, question)) != 0 ? rule.substring(question + 1, colon)
                : rule.substring(colon + 1), numbers);
        }
        long sum = 0;
        for (String term : rule.split("\\+")) {
            sum += Character.isDigit(term.charAt(0)) ? Long.parseLong(term) : numbers.get(term);
        }
        return Math.max(1, sum);
    }

    /** Names of the arguments with a kind. */
    Set<String> names(Kind kind) {
        Set<String> names = new HashSet<>();
        arguments.stream().filter(a -> a.kind == kind).forEach(a -> names.add(a.name));
        return names;
    }
}
