package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Compares the description of cuSPARSELt with facts of cusparseLt.h of 0.8.0, as JavaCPP has no preset for it: names,
 * widths of parameters, constants.
 */
class CusparseLtHeaderTest {
    /** Each function, and the bytes of its parameters. */
    private static final String FUNCTIONS = """
        Init 8
        Destroy 8
        GetVersion 88
        GetProperty 48
        GetErrorName 4
        GetErrorString 4
        DenseDescriptorInit 88888444
        StructuredDescriptorInit 888884444
        MatDescriptorDestroy 8
        MatDescSetAttribute 88488
        MatDescGetAttribute 88488
        MatmulDescriptorInit 884488884
        MatmulDescSetAttribute 88488
        MatmulDescGetAttribute 88488
        MatmulAlgSelectionInit 8884
        MatmulAlgSelectionDestroy 8
        MatmulAlgSetAttribute 88488
        MatmulAlgGetAttribute 88488
        MatmulGetWorkspace 888
        MatmulPlanInit 8888
        MatmulPlanDestroy 8
        Matmul 88888888884
        MatmulSearch 88888888884
        SpMMAPrune 888848
        SpMMAPruneCheck 88888
        SpMMAPrune2 88448848
        SpMMAPruneCheck2 8844888
        SpMMACompressedSize 8888
        SpMMACompress 888888
        SpMMACompressedSize2 8888
        SpMMACompress2 88448888
        """;

    /** The constants of each enumeration from its first value, counted by one. */
    private static final Map<String, List<String>> CONSTANTS = Map.of(
        "cusparseLtSparsity_t", List.of("SPARSITY_50_PERCENT"),
        "cusparseLtMatDescAttribute_t", List.of("MAT_NUM_BATCHES", "MAT_BATCH_STRIDE"),
        "cusparseLtMatmulDescAttribute_t", List.of("MATMUL_ACTIVATION_RELU", "MATMUL_ACTIVATION_RELU_UPPERBOUND",
            "MATMUL_ACTIVATION_RELU_THRESHOLD", "MATMUL_ACTIVATION_GELU", "MATMUL_ACTIVATION_GELU_SCALING",
            "MATMUL_ALPHA_VECTOR_SCALING", "MATMUL_BETA_VECTOR_SCALING", "MATMUL_BIAS_STRIDE", "MATMUL_BIAS_POINTER",
            "MATMUL_SPARSE_MAT_POINTER", "MATMUL_A_SCALE_MODE", "MATMUL_B_SCALE_MODE", "MATMUL_C_SCALE_MODE",
            "MATMUL_D_SCALE_MODE", "MATMUL_D_OUT_SCALE_MODE", "MATMUL_A_SCALE_POINTER", "MATMUL_B_SCALE_POINTER",
            "MATMUL_C_SCALE_POINTER", "MATMUL_D_SCALE_POINTER", "MATMUL_D_OUT_SCALE_POINTER"),
        "cusparseLtMatmulMatrixScale_t", List.of("MATMUL_SCALE_NONE", "MATMUL_MATRIX_SCALE_SCALAR_32F",
            "MATMUL_MATRIX_SCALE_VEC32_UE4M3", "MATMUL_MATRIX_SCALE_VEC64_UE8M0"),
        "cusparseLtMatmulAlg_t", List.of("MATMUL_ALG_DEFAULT"),
        "cusparseLtMatmulAlgAttribute_t", List.of("MATMUL_ALG_CONFIG_ID", "MATMUL_ALG_CONFIG_MAX_ID",
            "MATMUL_SEARCH_ITERATIONS", "MATMUL_SPLIT_K", "MATMUL_SPLIT_K_MODE", "MATMUL_SPLIT_K_BUFFERS"),
        "cusparseLtSplitKMode_t", List.of("INVALID_MODE", "SPLIT_K_MODE_ONE_KERNEL", "SPLIT_K_MODE_TWO_KERNELS",
            "HEURISTIC", "DATAPARALLEL", "SPLITK", "STREAMK"),
        "cusparseLtPruneAlg_t", List.of("PRUNE_SPMMA_TILE", "PRUNE_SPMMA_STRIP"));

    private Library library;

    @BeforeEach
    void read() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cusparselt");
    }

    @Test
    void shouldAgreeInFunctionsAndTheWidthsOfParameters() {
        Map<String, String> header = FUNCTIONS.lines().map(line -> line.split(" "))
            .collect(Collectors.toMap(words -> "cusparseLt" + words[0], words -> words[1]));
        Map<String, String> described = library.functions().stream().filter(ApiFunction::exported)
            .collect(Collectors.toMap(ApiFunction::symbol, function -> function.params().stream()
                .map(param -> String.valueOf(Preset.width(library, param))).collect(Collectors.joining())));
        assertEquals(new TreeMap<>(header), new TreeMap<>(described));
    }

    @Test
    void shouldAgreeInEveryConstant() {
        Map<String, Map<String, Long>> described = new TreeMap<>();
        for (Enumeration type : library.types().all(Enumeration.class)) {
            if (CONSTANTS.containsKey(type.name())) {
                described.put(type.name(), new TreeMap<>(type.values()));
            }
        }
        Map<String, Map<String, Long>> header = new TreeMap<>();
        CONSTANTS.forEach((type, names) -> {
            Map<String, Long> values = new TreeMap<>();
            names.forEach(name -> values.put("CUSPARSELT_" + name, (long) values.size()));
            header.put(type, values);
        });
        assertEquals(header, described);
    }

    @Test
    void shouldAgreeInTypesOfComputation() {
        Map<String, Long> described = library.types().all(Enumeration.class).stream()
            .filter(type -> type.name().equals("cusparseComputeType")).findFirst().orElseThrow().values();
        List<String> names = Arrays.asList("CUSPARSE_COMPUTE_32I", "CUSPARSE_COMPUTE_16F", "CUSPARSE_COMPUTE_32F");
        assertEquals(names.size(), described.size());
        names.forEach(name -> assertEquals((long) names.indexOf(name), described.get(name)));
    }
}
