package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** {@code hawser-check --frameworks} with the script that needs no framework: Python by {@code hawser run}. */
@Timeout(600)
class FrameworksIT {
    private static final Path ROOT = Path.of(System.getProperty("hawser.root", "../..")).toAbsolutePath().normalize();

    private static String check(int exit, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(ROOT.resolve("appliance/check/src/main/sh/hawser-check")
            .toString(), "--frameworks"));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(exit, process.waitFor(), output);
        return output;
    }

    @Test
    void shouldRunPythonThroughBothCarriers() throws IOException, InterruptedException {
        String output = check(0, "--backend", "software", "--only", "python_ctypes:copies");
        assertTrue(output.contains("1 cases: 2 runs over a carrier right, 0 wrong or hung"), output);
        assertTrue(output.contains("python_ctypes: ctypes 13.0"), output);
    }

    @Test
    void shouldNotCallNothingRight() throws IOException, InterruptedException {
        String output = check(1, "--backend", "software", "--only", "python_ctypes:no_such_case");
        assertTrue(output.contains("no such case"), output);
        assertTrue(check(2, "--only", "no_such_script").contains("there are: cupy_math, jax_math, numba_math"));
    }
}
