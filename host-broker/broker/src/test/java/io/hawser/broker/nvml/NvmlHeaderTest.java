package io.hawser.broker.nvml;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.StructLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares the layouts with NVIDIA's nvml.h, where it is installed. */
class NvmlHeaderTest {
    @TempDir
    Path folder;

    @Test
    void shouldAgreeWithTheHeader() throws Exception {
        Path include = Stream.of(System.getenv("CUDA_HOME") == null ? "" : System.getenv("CUDA_HOME") + "/include",
            "/usr/local/cuda/include", "/usr/include").filter(p -> !p.isEmpty()).map(Path::of)
            .filter(p -> Files.isReadable(p.resolve("nvml.h"))).findFirst().orElse(null);
        assumeTrue(include != null, "skipped: no nvml.h");
        assertEquals("", compile(include, source()));
        assertNotEquals("", compile(include, source() + "_Static_assert(sizeof(nvmlMemory_t) == 25, \"\");\n"));
    }

    private static String source() {
        Map<String, StructLayout> structures = new LinkedHashMap<>();
        structures.put("nvmlMemory_t", NvmlLayout.MEMORY);
        structures.put("nvmlMemory_v2_t", NvmlLayout.MEMORY_V2);
        structures.put("nvmlUtilization_t", NvmlLayout.UTILIZATION);
        structures.put("nvmlProcessInfo_v1_t", NvmlLayout.PROCESS_INFO_V1);
        structures.put("nvmlProcessInfo_v2_t", NvmlLayout.PROCESS_INFO_V2);
        structures.put("nvmlEventData_t", NvmlLayout.EVENT_DATA);
        StringBuilder c = new StringBuilder("#include <stddef.h>\n#include <nvml.h>\n");
        structures.forEach((name, layout) -> {
            equal(c, "sizeof(" + name + ")", layout.byteSize());
            for (MemoryLayout member : layout.memberLayouts()) {
                if (!(member instanceof PaddingLayout)) {
                    String field = member.name().orElseThrow();
                    equal(c, "offsetof(" + name + ", " + field + ")", NvmlLayout.offset(layout, field));
                    equal(c, "sizeof(((" + name + " *) 0)->" + field + ")", member.byteSize());
                }
            }
        });
        equal(c, "NVML_SUCCESS", NvmlLayout.NVML_SUCCESS);
        equal(c, "NVML_ERROR_UNINITIALIZED", NvmlLayout.NVML_ERROR_UNINITIALIZED);
        equal(c, "NVML_ERROR_NOT_SUPPORTED", NvmlLayout.NVML_ERROR_NOT_SUPPORTED);
        equal(c, "NVML_ERROR_INSUFFICIENT_SIZE", NvmlLayout.NVML_ERROR_INSUFFICIENT_SIZE);
        equal(c, "NVML_ERROR_TIMEOUT", NvmlLayout.NVML_ERROR_TIMEOUT);
        equal(c, "NVML_ERROR_FUNCTION_NOT_FOUND", NvmlLayout.NVML_ERROR_FUNCTION_NOT_FOUND);
        equal(c, "NVML_ERROR_GPU_IS_LOST", NvmlLayout.NVML_ERROR_GPU_IS_LOST);
        equal(c, "NVML_ERROR_RESET_REQUIRED", NvmlLayout.NVML_ERROR_RESET_REQUIRED);
        equal(c, "NVML_DEVICE_UUID_V2_BUFFER_SIZE", NvmlLayout.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
        equal(c, "NVML_TEMPERATURE_GPU", NvmlLayout.NVML_TEMPERATURE_GPU);
        equal(c, "nvmlEventTypeXidCriticalError", NvmlLayout.NVML_EVENT_TYPE_XID_CRITICAL_ERROR);
        equal(c, "nvmlMemory_v2", NvmlLayout.MEMORY_V2_VERSION);
        return c.toString();
    }

    private static void equal(StringBuilder c, String expression, long value) {
        c.append("_Static_assert((").append(expression).append(") == ").append(value).append(", \"\");\n");
    }

    private String compile(Path include, String source) throws IOException, InterruptedException {
        Path file = Files.writeString(folder.resolve("nvml_conformance.c"), source);
        Process gcc = new ProcessBuilder("gcc", "-std=gnu11", "-fsyntax-only", "-I" + include, file.toString())
            .redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        return gcc.waitFor() == 0 ? "" : output;
    }
}
