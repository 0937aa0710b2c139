package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compares the description with NVIDIA's cuda.h, where the described version of CUDA is installed. */
class CudaHeaderTest {
    @TempDir
    private Path folder;
    private Header header;
    private Library library;

    @BeforeEach
    void findHeader() throws IOException {
        library = new DescriptionReader(Source.classPath()).read().library("cuda");
        header = Header.find("cuda.h", "CUDA_VERSION", Integer.parseInt(library.types().macros().get("CUDA_VERSION")));
    }

    @Test
    void shouldAgreeWithEveryEnumeratorOffsetAndPrototype() throws Exception {
        assertEquals("", compile(""));
    }

    @Test
    void shouldNoticeWrongDescription() throws Exception {
        assertNotEquals("", compile("_Static_assert(sizeof(CUDA_MEMCPY2D) == 136, \"\");\n"));
        assertNotEquals("", compile("CUresult (*const hws_wrong)(int) = cuCtxSetCurrent;\n"));
    }

    private String compile(String appended) throws Exception {
        // The macro makes the header declare every exported name, including old versions and per-thread variants.
        return header.compile(folder, library, List.of("cuda.h", "cudaProfiler.h"), "__CUDA_API_VERSION_INTERNAL",
            appended);
    }
}
