package io.hawser.gpu.nvidia;

import io.hawser.cuda.backend.CusparseLtBackend.Arguments;
import io.hawser.cuda.backend.CusparseLtBackend.Change;
import io.hawser.cuda.backend.CusparseLtBackend.Content;
import io.hawser.cuda.backend.CusparseLtBackend.Made;
import io.hawser.cuda.generated.cusparse.cusparseStatus_t;
import io.hawser.cuda.generated.cusparselt.CusparseLtNative;
import io.hawser.cuda.generated.cusparselt.HwsSltAlgorithm;
import io.hawser.cuda.generated.cusparselt.HwsSltFacts;
import io.hawser.cuda.generated.cusparselt.HwsSltFunction;
import io.hawser.cuda.generated.cusparselt.HwsSltMatmul;
import io.hawser.cuda.generated.cusparselt.HwsSltMatrix;
import io.hawser.cuda.generated.cusparselt.HwsSltStage;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatDescAttribute_t;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatmulAlgAttribute_t;
import io.hawser.cuda.generated.cusparselt.cusparseLtMatmulDescAttribute_t;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Descriptors, a selection and a plan of cuSPARSELt with one content, as far as its stage goes. Attributes with their
 * documented defaults are not set: a library need not support them. Session thread.
 */
final class NvidiaSltObjects implements Made {
    private static final int ATTRIBUTES = cusparseLtMatmulAlgAttribute_t.CUSPARSELT_MATMUL_SPLIT_K_BUFFERS + 1;

    private static final Attribute[] MATMUL = {
        real(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ACTIVATION_RELU_UPPERBOUND,
            HwsSltMatmul.RELU_UPPER_BOUND_OFFSET, Float.POSITIVE_INFINITY),
        real(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ACTIVATION_RELU_THRESHOLD,
            HwsSltMatmul.RELU_THRESHOLD_OFFSET, 0),
        real(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ACTIVATION_GELU_SCALING,
            HwsSltMatmul.GELU_SCALING_OFFSET, 1),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ACTIVATION_RELU, HwsSltMatmul.RELU_OFFSET),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ACTIVATION_GELU, HwsSltMatmul.GELU_OFFSET),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_ALPHA_VECTOR_SCALING,
            HwsSltMatmul.ALPHA_VECTOR_OFFSET),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_BETA_VECTOR_SCALING, HwsSltMatmul.BETA_VECTOR_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_BIAS_STRIDE, HwsSltMatmul.BIAS_STRIDE_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_BIAS_POINTER, HwsSltMatmul.BIAS_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_SPARSE_MAT_POINTER,
            HwsSltMatmul.SPARSE_MATRIX_OFFSET),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_A_SCALE_MODE, HwsSltMatmul.SCALE_MODES_OFFSET),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_B_SCALE_MODE, HwsSltMatmul.SCALE_MODES_OFFSET + 4),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_C_SCALE_MODE, HwsSltMatmul.SCALE_MODES_OFFSET + 8),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_D_SCALE_MODE, HwsSltMatmul.SCALE_MODES_OFFSET + 12),
        whole(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_D_OUT_SCALE_MODE,
            HwsSltMatmul.SCALE_MODES_OFFSET + 16),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_A_SCALE_POINTER, HwsSltMatmul.A_SCALE_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_B_SCALE_POINTER, HwsSltMatmul.B_SCALE_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_C_SCALE_POINTER, HwsSltMatmul.C_SCALE_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_D_SCALE_POINTER, HwsSltMatmul.D_SCALE_OFFSET),
        longer(cusparseLtMatmulDescAttribute_t.CUSPARSELT_MATMUL_D_OUT_SCALE_POINTER,
            HwsSltMatmul.D_OUT_SCALE_OFFSET),
    };

    private final CusparseLtNative library;
    private final MemorySegment handle;
    private final Arena arena = Arena.ofAuto();
    private final MemorySegment value = arena.allocate(Long.BYTES, Long.BYTES); // of the attribute in hand
    private final int stage;
    private final boolean isStructured; // the matrix alone
    private final MemorySegment algorithm; // of the content
    private final MemorySegment[] matrices;
    private final MemorySegment matmul = object();
    private final MemorySegment selection = object();
    private final MemorySegment plan = object();
    private int madeMatrices;
    private boolean hasSelection;
    private boolean hasPlan;
    private int status;

    /** An attribute, its place in the content, and its default as bits. */
    private record Attribute(int number, int offset, int bytes, long byDefault) {
        long value(MemorySegment content) {
            return bytes == Integer.BYTES ? content.get(ValueLayout.JAVA_INT_UNALIGNED, offset) & 0xffff_ffffL
                : content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
        }
    }

    private static Attribute whole(int number, int offset) {
        return new Attribute(number, offset, Integer.BYTES, 0);
    }

    private static Attribute longer(int number, int offset) {
        return new Attribute(number, offset, Long.BYTES, 0);
    }

    private static Attribute real(int number, int offset, float byDefault) {
        return new Attribute(number, offset, Float.BYTES, Float.floatToRawIntBits(byDefault) & 0xffff_ffffL);
    }

    NvidiaSltObjects(CusparseLtNative library, MemorySegment handle, Content content) {
        this.library = library;
        this.handle = handle;
        stage = content.stage();
        isStructured = integer(content.matrices()[0], HwsSltMatrix.IS_STRUCTURED_OFFSET) != 0;
        algorithm = content.algorithm();
        matrices = new MemorySegment[stage == HwsSltStage.HWS_SLT_MATRIX ? 1 : content.matrices().length];
        for (int i = 0; i < matrices.length && status == 0; i++) {
            makeMatrix(i, content.matrices());
        }
        if (status == 0 && stage >= HwsSltStage.HWS_SLT_MATMUL) {
            makeMatmul(content.matmul());
        }
        if (status == 0 && stage >= HwsSltStage.HWS_SLT_SELECTION) {
            makeSelection();
        }
        if (status == 0 && stage == HwsSltStage.HWS_SLT_PLAN) {
            status = library.cusparseLtMatmulPlanInit(handle, plan, matmul, selection);
            hasPlan = status == 0;
        }
    }

    private MemorySegment object() {
        return arena.allocate(NvidiaCusparseLt.OBJECT_BYTES, NvidiaCusparseLt.OBJECT_ALIGNMENT);
    }

    private static int integer(MemorySegment content, int offset) {
        return content.get(ValueLayout.JAVA_INT_UNALIGNED, offset);
    }

    private static long number(MemorySegment content, int offset) {
        return content.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
    }

    /** Programs give the library one descriptor for C and D, so equal contents share one. */
    private void makeMatrix(int index, MemorySegment[] contents) {
        if (index == matrices.length - 1 && index > 0 && contents[index].mismatch(contents[index - 1]) < 0) {
            matrices[index] = matrices[index - 1];
            return;
        }
        MemorySegment content = contents[index];
        MemorySegment made = object();
        long rows = number(content, HwsSltMatrix.ROWS_OFFSET);
        long cols = number(content, HwsSltMatrix.COLS_OFFSET);
        long ld = number(content, HwsSltMatrix.LD_OFFSET);
        int alignment = integer(content, HwsSltMatrix.ALIGNMENT_OFFSET);
        int type = integer(content, HwsSltMatrix.TYPE_OFFSET);
        int order = integer(content, HwsSltMatrix.ORDER_OFFSET);
        status = integer(content, HwsSltMatrix.IS_STRUCTURED_OFFSET) == 0
            ? library.cusparseLtDenseDescriptorInit(handle, made, rows, cols, ld, alignment, type, order)
            : library.cusparseLtStructuredDescriptorInit(handle, made, rows, cols, ld, alignment, type, order,
                integer(content, HwsSltMatrix.SPARSITY_OFFSET));
        if (status != 0) {
            return;
        }
        matrices[index] = made;
        madeMatrices = index + 1;
        int batches = integer(content, HwsSltMatrix.NUM_BATCHES_OFFSET);
        long stride = number(content, HwsSltMatrix.BATCH_STRIDE_OFFSET);
        if (batches != 1) {
            value.set(ValueLayout.JAVA_INT, 0, batches);
            status = library.cusparseLtMatDescSetAttribute(handle, made,
                cusparseLtMatDescAttribute_t.CUSPARSELT_MAT_NUM_BATCHES, value, Integer.BYTES);
        }
        if (status == 0 && stride != 0) {
            value.set(ValueLayout.JAVA_LONG, 0, stride);
            status = library.cusparseLtMatDescSetAttribute(handle, made,
                cusparseLtMatDescAttribute_t.CUSPARSELT_MAT_BATCH_STRIDE, value, Long.BYTES);
        }
    }

    private void makeMatmul(MemorySegment content) {
        status = library.cusparseLtMatmulDescriptorInit(handle, matmul, integer(content, HwsSltMatmul.OP_A_OFFSET),
            integer(content, HwsSltMatmul.OP_B_OFFSET), matrices[0], matrices[1], matrices[2], matrices[3],
            integer(content, HwsSltMatmul.COMPUTE_TYPE_OFFSET));
        for (int i = 0; i < MATMUL.length && status == 0; i++) {
            long wanted = MATMUL[i].value(content);
            if (wanted != MATMUL[i].byDefault) {
                value.set(ValueLayout.JAVA_LONG, 0, wanted); // little-endian: also a shorter number
                status = library.cusparseLtMatmulDescSetAttribute(handle, matmul, MATMUL[i].number, value,
                    MATMUL[i].bytes);
            }
        }
    }

    private void makeSelection() {
        status = library.cusparseLtMatmulAlgSelectionInit(handle, selection, matmul,
            integer(algorithm, HwsSltAlgorithm.ALG_OFFSET));
        hasSelection = status == 0;
        int set = integer(algorithm, HwsSltAlgorithm.IS_SET_OFFSET);
        for (int i = 0; i < ATTRIBUTES && status == 0; i++) {
            if ((set >>> i & 1) != 0 && i != cusparseLtMatmulAlgAttribute_t.CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID) {
                value.set(ValueLayout.JAVA_INT, 0,
                    integer(algorithm, HwsSltAlgorithm.VALUES_OFFSET + i * Integer.BYTES));
                status = library.cusparseLtMatmulAlgSetAttribute(handle, selection, i, value, Integer.BYTES);
            }
        }
    }

    @Override
    public int status() {
        return status;
    }

    /** Reads the attributes of the selection. Returns which ones the library knows, as bits. */
    private int read(int[] values) {
        int known = 0;
        for (int i = 0; i < ATTRIBUTES; i++) {
            if (library.cusparseLtMatmulAlgGetAttribute(handle, selection, i, value, Integer.BYTES) == 0) {
                known |= 1 << i;
                values[i] = value.get(ValueLayout.JAVA_INT, 0);
            }
        }
        return known;
    }

    @Override
    public void facts(MemorySegment facts) {
        if (hasSelection) {
            int[] values = new int[ATTRIBUTES];
            facts.set(ValueLayout.JAVA_INT, HwsSltFacts.HAS_VALUES_OFFSET, read(values));
            for (int i = 0; i < ATTRIBUTES; i++) {
                facts.set(ValueLayout.JAVA_INT, HwsSltFacts.VALUES_OFFSET + (long) i * Integer.BYTES, values[i]);
            }
        }
        MemorySegment compressed = facts.asSlice(HwsSltFacts.COMPRESSED_BYTES_OFFSET, Long.BYTES);
        MemorySegment buffer = facts.asSlice(HwsSltFacts.COMPRESS_BUFFER_BYTES_OFFSET, Long.BYTES);
        if (hasPlan) {
            facts.set(ValueLayout.JAVA_INT, HwsSltFacts.WORKSPACE_STATUS_OFFSET,
                library.cusparseLtMatmulGetWorkspace(handle, plan,
                    facts.asSlice(HwsSltFacts.WORKSPACE_BYTES_OFFSET, Long.BYTES)));
        }
        // A dense matrix, and objects before a plan, have no such size.
        facts.set(ValueLayout.JAVA_INT, HwsSltFacts.COMPRESSED_STATUS_OFFSET,
            hasPlan ? library.cusparseLtSpMMACompressedSize(handle, plan, compressed, buffer)
                : stage == HwsSltStage.HWS_SLT_MATRIX && isStructured
                    ? library.cusparseLtSpMMACompressedSize2(handle, matrices[0], compressed, buffer)
                : cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE);
    }

    @Override
    public int run(Arguments call) {
        return library.cusparseLtMatmul(handle, plan, call.alpha(), MemorySegment.ofAddress(call.a()),
            MemorySegment.ofAddress(call.b()), call.beta(), MemorySegment.ofAddress(call.c()),
            MemorySegment.ofAddress(call.d()), MemorySegment.ofAddress(call.workspace()), call.streams(),
            call.streamCount());
    }

    @Override
    public int search(Arguments call, MemorySegment found) {
        int[] before = new int[ATTRIBUTES];
        int[] after = new int[ATTRIBUTES];
        int known = read(before);
        int result = library.cusparseLtMatmulSearch(handle, plan, call.alpha(), MemorySegment.ofAddress(call.a()),
            MemorySegment.ofAddress(call.b()), call.beta(), MemorySegment.ofAddress(call.c()),
            MemorySegment.ofAddress(call.d()), MemorySegment.ofAddress(call.workspace()), call.streams(),
            call.streamCount());
        if (result != 0) {
            return result;
        }
        known &= read(after);
        found.copyFrom(algorithm);
        int set = integer(algorithm, HwsSltAlgorithm.IS_SET_OFFSET);
        for (int i = 0; i < ATTRIBUTES; i++) {
            boolean isChosen = i == cusparseLtMatmulAlgAttribute_t.CUSPARSELT_MATMUL_ALG_CONFIG_ID
                || after[i] != before[i];
            if (isChosen && (known >>> i & 1) != 0
                && i != cusparseLtMatmulAlgAttribute_t.CUSPARSELT_MATMUL_ALG_CONFIG_MAX_ID) {
                set |= 1 << i;
                found.set(ValueLayout.JAVA_INT, HwsSltAlgorithm.VALUES_OFFSET + (long) i * Integer.BYTES, after[i]);
            }
        }
        found.set(ValueLayout.JAVA_INT, HwsSltAlgorithm.IS_SET_OFFSET, set);
        return 0;
    }

    @Override
    public int change(Change call) {
        MemorySegment input = MemorySegment.ofAddress(call.input());
        MemorySegment output = MemorySegment.ofAddress(call.output());
        MemorySegment buffer = MemorySegment.ofAddress(call.buffer());
        return switch (call.function()) {
            case HwsSltFunction.HWS_SLT_PRUNE ->
                library.cusparseLtSpMMAPrune(handle, matmul, input, output, call.pruneAlg(), call.stream());
            case HwsSltFunction.HWS_SLT_PRUNE2 -> library.cusparseLtSpMMAPrune2(handle, matrices[0], call.isSparseA(),
                call.op(), input, output, call.pruneAlg(), call.stream());
            case HwsSltFunction.HWS_SLT_CHECK ->
                library.cusparseLtSpMMAPruneCheck(handle, matmul, input, output, call.stream());
            case HwsSltFunction.HWS_SLT_CHECK2 -> library.cusparseLtSpMMAPruneCheck2(handle, matrices[0],
                call.isSparseA(), call.op(), input, output, call.stream());
            case HwsSltFunction.HWS_SLT_COMPRESS ->
                library.cusparseLtSpMMACompress(handle, plan, input, output, buffer, call.stream());
            case HwsSltFunction.HWS_SLT_COMPRESS2 -> library.cusparseLtSpMMACompress2(handle, matrices[0],
                call.isSparseA(), call.op(), input, output, buffer, call.stream());
            default -> cusparseStatus_t.CUSPARSE_STATUS_INVALID_VALUE;
        };
    }

    @Override
    public void close() {
        if (hasPlan) {
            library.cusparseLtMatmulPlanDestroy(plan);
        }
        if (hasSelection) {
            library.cusparseLtMatmulAlgSelectionDestroy(selection);
        }
        for (int i = 0; i < madeMatrices; i++) {
            library.cusparseLtMatDescriptorDestroy(matrices[i]);
        }
    }
}
