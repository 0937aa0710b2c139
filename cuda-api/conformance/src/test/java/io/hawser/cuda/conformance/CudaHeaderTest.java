package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.c.CConformanceEmitter;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares the description with NVIDIA's cuda.h, where the described version of CUDA is installed. */
class CudaHeaderTest {
    private static final Pattern VERSION = Pattern.compile("#define\\s+CUDA_VERSION\\s+(\\d+)");

    @TempDir
    private Path folder;
    private Path include;
    private Library library;

    @BeforeEach
    void findHeader() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cuda");
        int described = Integer.parseInt(library.types().macros().get("CUDA_VERSION"));
        include = Stream.of(System.getenv("CUDA_HOME") == null ? "" : System.getenv("CUDA_HOME") + "/include",
            "/usr/local/cuda/include", "/usr/include").filter(p -> !p.isEmpty()).map(Path::of)
            .filter(p -> Files.isReadable(p.resolve("cuda.h"))).findFirst().orElse(null);
        skipUnless(include != null, "no cuda.h");
        Matcher version = VERSION.matcher(Files.readString(include.resolve("cuda.h")));
        assertTrue(version.find(), "cuda.h must define CUDA_VERSION: " + include);
        skipUnless(Integer.parseInt(version.group(1)) == described,
            "cuda.h is version " + version.group(1) + ", the description is of " + described);
    }

    @Test
    void shouldAgreeWithEveryEnumeratorOffsetAndPrototype() throws Exception {
        String errors = compile(library, "");
        assertEquals("", errors);
    }

    @Test
    void shouldNoticeWrongDescription() throws Exception {
        assertNotEquals("", compile(library, "_Static_assert(sizeof(CUDA_MEMCPY2D) == 136, \"\");\n"));
        assertNotEquals("", compile(library, "CUresult (*const hws_wrong)(int) = cuCtxSetCurrent;\n"));
    }

    private String compile(Library described, String appended) throws Exception {
        OutputFiles files = new OutputFiles(folder, "Conformance.");
        CConformanceEmitter.emit(described, List.of("cuda.h", "cudaProfiler.h"), files);
        Path source = folder.resolve("hws_cuda_conformance.c");
        Files.writeString(source, Files.readString(source) + appended);
        // The macro makes the header declare every exported name, including old versions and per-thread variants.
        Process gcc = new ProcessBuilder("gcc", "-std=gnu11", "-fsyntax-only", "-D__CUDA_API_VERSION_INTERNAL",
            "-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration", "-I" + include,
            source.toString()).redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertTrue(gcc.waitFor(60, TimeUnit.SECONDS), "gcc must end");
        return gcc.exitValue() == 0 ? "" : output;
    }

    private static void skipUnless(boolean condition, String reason) {
        if (!condition) {
            System.out.println("cuda-api conformance skipped: " + reason);
        }
        Assumptions.assumeTrue(condition, "skipped: " + reason);
    }
}
