package io.hawser.reference;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Makes the page of NVML's functions and their answers from the description. */
class NvmlReferenceTest {
    private static final String FOLDER = "cuda-api/description/nvml/";
    private static final int COLUMNS = 120;

    private static JsonNode read(String file) throws IOException {
        return new YAMLMapper().readTree(Repository.file(FOLDER + file + ".yaml").toFile());
    }

    @Test
    void shouldEqualTheCommittedPage() throws IOException {
        Markdown page = new Markdown("`" + FOLDER + "`", "NVML in a guest").prose("""
            The guest's `libnvidia-ml.so.1` has the functions of NVML of CUDA 13.0 (driver 580). It answers from the
            status of the vGPU, without a session. Before `nvmlInit` a function returns `NVML_ERROR_UNINITIALIZED`.
            Without a vGPU `nvmlInit` returns `NVML_ERROR_DRIVER_NOT_LOADED`. A GPU that the vGPU has lost, or a broker
            that has ended, gives `NVML_ERROR_GPU_IS_LOST`.
            """).heading(2, "Answered").tableHead("function", "answer");
        for (JsonNode group : read("library").get("groups")) {
            JsonNode file = read(group.asText());
            for (JsonNode function : file.get("functions")) {
                JsonNode own = function.path("guest").path("manual");
                page.tableRow("`" + function.get("symbol").asText() + "`",
                    (own.isMissingNode() ? file.get("local") : own).asText());
            }
        }
        List<String> lines = new ArrayList<>(List.of(""));
        JsonNode unsupported = read("unsupported").get("groups").get(0).get("exports");
        for (Map.Entry<String, JsonNode> export : unsupported.properties()) {
            String last = lines.getLast();
            if (last.length() + export.getKey().length() + 1 > COLUMNS) {
                lines.add(export.getKey());
            } else {
                lines.set(lines.size() - 1, last.isEmpty() ? export.getKey() : last + " " + export.getKey());
            }
        }
        assertTrue(lines.size() > 1, "the description must list the functions without an answer");
        page.heading(2, "Not supported").prose("""
            These functions return `NVML_ERROR_NOT_SUPPORTED`. Among them are those of MIG and NVLink, as on a GPU
            without them, and those that change a GPU.
            """).code(String.join("\n", lines));
        new Page("appliance/docs/reference/nvml.md").check(page.text());
    }
}
