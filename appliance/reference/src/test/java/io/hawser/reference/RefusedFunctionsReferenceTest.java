package io.hawser.reference;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Makes the page of the refused functions from the description, and compares their names with the exports. */
class RefusedFunctionsReferenceTest {
    private static final String TABLE = "cuda-api/description/cuda/unsupported.yaml";
    private static final String DRIVER_EXPORTS = "guest-agent/interposer/tests/libcuda-exports.txt";
    private static final List<String> RUNTIME_EXPORTS = List.of("guest-agent/interposer/cudart/exports-12.txt",
        "guest-agent/interposer/cudart/exports-13.txt");

    private final JsonNode groups;

    RefusedFunctionsReferenceTest() throws IOException {
        groups = new YAMLMapper().readTree(Repository.file(TABLE).toFile()).get("groups");
    }

    private static TreeSet<String> lines(List<String> files) throws IOException {
        TreeSet<String> all = new TreeSet<>();
        for (String file : files) {
            all.addAll(Files.readAllLines(Repository.file(file)));
        }
        return all;
    }

    @Test
    void shouldListEachExportWithAReasonOnce() throws IOException {
        List<String> driver = new ArrayList<>();
        List<String> runtime = new ArrayList<>();
        for (JsonNode group : groups) {
            assertFalse(group.path("reason").asText().isBlank(), "a group must have a reason: " + group);
            group.path("exports").fieldNames().forEachRemaining(driver::add);
            group.path("runtime").forEach(name -> runtime.add(name.asText()));
        }
        assertFalse(driver.isEmpty() || runtime.isEmpty(), "no function is listed");
        assertEquals(driver.size(), new TreeSet<>(driver).size(), "a function of the driver is listed twice");
        assertEquals(runtime.size(), new TreeSet<>(runtime).size(), "a function of the runtime is listed twice");
        assertTrue(lines(List.of(DRIVER_EXPORTS)).containsAll(driver), "not all are exports: " + driver);
        assertTrue(lines(RUNTIME_EXPORTS).containsAll(runtime), "not all are exports: " + runtime);
    }

    @Test
    void shouldEqualTheCommittedPage() {
        Markdown page = new Markdown("`" + TABLE + "`", "Refused functions").prose("""
            Hawser's libraries export every function of NVIDIA's. The functions of this page have no implementation.
            They change nothing, return the error of their row, and the guest names each of them once on stderr.
            """);
        for (JsonNode group : groups) {
            TreeMap<String, String> rows = new TreeMap<>();
            group.path("exports").properties().forEach(export -> rows.put(export.getKey(),
                "`CUDA_ERROR_NOT_SUPPORTED`"));
            group.path("runtime").forEach(name -> rows.put(name.asText(), "`cudaErrorNotSupported`"));
            page.heading(2, group.get("title").asText()).prose(group.get("reason").asText())
                .tableHead("function", "error");
            rows.forEach((name, error) -> page.tableRow("`" + name + "`", error));
        }
        new Page("appliance/docs/reference/refused-functions.md").check(page.text());
    }
}
