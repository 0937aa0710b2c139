package io.hawser.cuda.generator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MainTest {
    @TempDir
    private Path folder;

    @Test
    void shouldLeaveRightFilesAloneAndRemoveStaleOnes() throws IOException {
        generate("c");
        Path types = folder.resolve("hws_cuda_types.h");
        Path changed = folder.resolve("hws_wire.h");
        Path stale = Files.writeString(folder.resolve("hws_cuda_calls_gone.c"), Files.readString(types));
        Path foreign = Files.writeString(folder.resolve("foreign.c"), "/* not ours */\n");
        Files.writeString(changed, "something else");
        FileTime old = FileTime.fromMillis(1_000_000);
        Files.setLastModifiedTime(types, old);
        generate("c");
        assertEquals(old, Files.getLastModifiedTime(types));
        assertTrue(Files.readString(changed).contains("HWS_WIRE_H"));
        assertFalse(Files.exists(stale));
        assertTrue(Files.exists(foreign));
    }

    @Test
    void shouldGiveEveryFunctionAStubADeclarationOrAnUnsupportedOne() throws IOException {
        generate("c");
        Library library = new DescriptionReader(Source.classPath()).read().library("cuda");
        String functions = Files.readString(folder.resolve("hws_cuda_functions.h"));
        String procs = Files.readString(folder.resolve("hws_cuda_procs.inc"));
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
                assertTrue(functions.contains("CUresult " + function.symbol() + "("), function.symbol());
                assertTrue(procs.contains(", " + function.symbol() + ")"), function.symbol());
            }
        }
        String unsupported = Files.readString(folder.resolve("hws_cuda_unsupported.c"));
        library.unsupported().keySet().forEach(name -> assertTrue(unsupported.contains(" " + name + "(void) {"),
            name));
    }

    @Test
    void shouldOrderLookUpByVersion() throws IOException {
        generate("c");
        String procs = Files.readString(folder.resolve("hws_cuda_procs.inc"));
        int first = procs.indexOf("HWS_PROC(\"cuCtxCreate\", 2000, 0, cuCtxCreate)");
        int last = procs.indexOf("HWS_PROC(\"cuCtxCreate\", 12050, 0, cuCtxCreate_v4)");
        assertTrue(0 < first && first < last);
        assertTrue(procs.contains("HWS_PROC(\"cuMemcpyHtoDAsync\", 7000, 1, cuMemcpyHtoDAsync_v2_ptsz)"));
    }

    @Test
    void shouldRejectInvalidArguments() {
        assertThrows(IllegalArgumentException.class, () -> Main.main(new String[] {"--language", "c"}));
        assertThrows(IllegalArgumentException.class, () -> Main.main(new String[] {"--language", "pascal", "--out",
            folder.toString()}));
    }

    private void generate(String language) throws IOException {
        Main.main(new String[] {"--language", language, "--out", folder.toString()});
    }
}
