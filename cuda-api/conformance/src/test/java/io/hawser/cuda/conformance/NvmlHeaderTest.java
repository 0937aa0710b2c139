package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares the description with NVIDIA's nvml.h, where the described version is installed. */
class NvmlHeaderTest {
    private static final Pattern DECLARATION = Pattern.compile("(?m)^\\s*(?:const\\s+char\\s*\\*|nvmlReturn_t)\\s+"
        + "DECLDIR\\s+(nvml\\w+)\\s*\\(");

    @TempDir
    private Path folder;
    private Header header;
    private Library library;

    @BeforeEach
    void findHeader() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("nvml");
        header = Header.find("nvml.h", "NVML_API_VERSION", Integer.parseInt(library.types().macros()
            .get("NVML_API_VERSION")));
    }

    @Test
    void shouldAgreeWithEveryEnumeratorOffsetAndPrototype() throws Exception {
        assertEquals("", compile(""));
    }

    @Test
    void shouldNoticeWrongDescription() throws Exception {
        assertNotEquals("", compile("_Static_assert(sizeof(nvmlMemory_t) == 25, \"\");\n"));
        assertNotEquals("", compile("nvmlReturn_t (*const hws_wrong)(int) = nvmlDeviceGetName;\n"));
    }

    @Test
    void shouldNameEveryFunctionOfTheHeader() {
        Set<String> missing = new TreeSet<>();
        DECLARATION.matcher(header.text()).results().forEach(found -> missing.add(found.group(1)));
        assertNotEquals(Set.of(), missing, "the header must declare functions");
        library.functions().stream().map(ApiFunction::symbol).forEach(missing::remove);
        missing.removeAll(library.unsupported().keySet());
        assertEquals(Set.of(), missing);
    }

    private String compile(String appended) throws Exception {
        // The macro keeps the names of the first versions, which are functions of their own.
        return header.compile(folder, library, List.of("nvml.h"), "NVML_NO_UNVERSIONED_FUNC_DEFS", appended);
    }
}
