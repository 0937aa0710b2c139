package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.lang.constant.ClassDesc;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Compares the descriptions of cuBLAS and cublasLt with JavaCPP's preset, which was made from NVIDIA's headers: names,
 * numbers of parameters, their widths, and constants.
 */
class CublasPresetTest {
    /** Inline functions of the headers, which the libraries do not export. */
    private static final Set<String> INLINE = Set.of("cublasMigrateComputeType", "cublasLtEmulationDescInit",
        "cublasLtGroupedMatrixLayoutInit", "cublasLtMatmulDescInit", "cublasLtMatmulPreferenceInit",
        "cublasLtMatrixLayoutInit", "cublasLtMatrixTransformDescInit");

    /** Exported functions that the preset lacks. */
    private static final Set<String> NOT_IN_PRESET = Set.of("cublasLtDisableCpuInstructionsSetMask");
    /** Constants of CUDA 12 alone. */
    private static final Set<String> OLD_CONSTANTS = Set.of("CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_ROWS",
        "CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_COLS", "CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER",
        "CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER", "CUBLASLT_ALGO_CAP_ATOMIC_SYNC");

    private Map<String, List<List<ClassDesc>>> functions;
    private Map<String, Integer> constants;
    private Preset preset;
    private Description description;

    @BeforeEach
    void readPreset() throws IOException {
        description = new DescriptionReader(Source.classPath()).read();
        preset = Preset.read("cublas");
        functions = preset.functions();
        constants = preset.constants();
    }

    @Test
    void shouldNameEveryFunction() {
        Set<String> missing = new TreeSet<>(functions.keySet());
        missing.removeAll(INLINE);
        Set<String> unknown = new TreeSet<>();
        for (Library library : libraries()) {
            exported(library).map(ApiFunction::symbol).forEach(name -> {
                if (!missing.remove(name)) {
                    unknown.add(name);
                }
            });
            library.unsupported().keySet().forEach(name -> {
                if (missing.remove(name) == library.headerless().contains(name)) {
                    unknown.add(name);
                }
            });
        }
        assertEquals(Set.of(), missing, "not described");
        assertEquals(Set.of(), unknown, "not in the preset, or wrongly without a header");
    }

    @Test
    void shouldAgreeInTheWidthOfEveryParameter() {
        for (Library library : libraries()) {
            for (ApiFunction function : exported(library).toList()) {
                List<Integer> widths = function.params().stream().map(p -> Preset.width(library, p)).toList();
                assertTrue(preset.hasForm(function.symbol(), widths), () -> function.symbol() + " " + widths + " "
                    + functions.get(function.symbol()));
            }
        }
    }

    @Test
    void shouldAgreeInEveryConstantOfTheLibrary() {
        int compared = 0;
        for (Enumeration type : description.library("cublas").types().all(Enumeration.class)) {
            for (Map.Entry<String, Long> value : type.values().entrySet()) {
                if (value.getKey().startsWith("CUBLAS_")) {
                    assertEquals(constants.get(value.getKey()), value.getValue().intValue(), value.getKey());
                    compared++;
                }
            }
        }
        assertTrue(compared > 80, "compared=" + compared);
    }

    @Test
    void shouldAgreeInEveryConstantOfCublasLt() {
        Set<String> old = new TreeSet<>();
        int compared = 0;
        for (Enumeration type : description.library("cublaslt").types().all(Enumeration.class)) {
            for (Map.Entry<String, Long> value : type.values().entrySet()) {
                if (!constants.containsKey(value.getKey())) {
                    old.add(value.getKey());
                    continue;
                }
                assertEquals(constants.get(value.getKey()), value.getValue().intValue(), value.getKey());
                compared++;
            }
        }
        assertEquals(new TreeSet<>(OLD_CONSTANTS), old);
        assertTrue(compared > 150, "compared=" + compared);
    }

    /** Functions with a name in a header: others exist only on the wire. */
    private static Stream<ApiFunction> exported(Library library) {
        return library.functions().stream().filter(f -> f.exported() && !NOT_IN_PRESET.contains(f.symbol()));
    }

    private List<Library> libraries() {
        return List.of(description.library("cublas"), description.library("cublaslt"));
    }
}
