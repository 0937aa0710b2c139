package io.hawser.broker.nvml;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A fake management library made of fake_nvml.c. The tests select its faults through a file. */
public final class FakeNvml {
    public static final String GPU_0 = "aaaaaaaa-0000-4000-8000-000000000001";
    public static final String GPU_1 = "bbbbbbbb-0000-4000-8000-000000000002";

    private final Path library;
    private final Path state;

    /** Compiles the library under the driver's name, so that programs find it by its folder. */
    public FakeNvml(Path folder, String... defines) throws Exception {
        library = folder.resolve(Nvml.LIBRARY);
        state = folder.resolve("trouble");
        tell("");
        List<String> command = new ArrayList<>(List.of("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror",
            "-DFAKE_NVML_STATE=\"" + state + "\"", "-o", library.toString(), "src/test/c/fake_nvml.c"));
        for (String define : defines) {
            command.add("-D" + define);
        }
        Process gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertEquals(0, gcc.waitFor(), output);
    }

    /** Selects the faults from now on; fake_nvml.c lists the words. */
    public void tell(String words) throws Exception {
        Path next = Files.writeString(state.resolveSibling("trouble.next"), words);
        Files.move(next, state, java.nio.file.StandardCopyOption.REPLACE_EXISTING,
            java.nio.file.StandardCopyOption.ATOMIC_MOVE);
    }

    /** Path of the library. */
    public Path library() {
        return library;
    }
}
