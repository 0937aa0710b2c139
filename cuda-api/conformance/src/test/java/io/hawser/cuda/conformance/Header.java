package io.hawser.cuda.conformance;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.c.CConformanceEmitter;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.Library;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A header of NVIDIA's on this machine. */
record Header(Path include, String text) {

    /**
     * Finds a header, or skips the test.
     *
     * @param name of the header.
     * @param version macro with its version.
     * @param described the version that the description covers.
     */
    static Header find(String name, String version, int described) throws IOException {
        Path include = Stream.of(System.getenv("CUDA_HOME") == null ? "" : System.getenv("CUDA_HOME") + "/include",
            "/usr/local/cuda/include", "/usr/include").filter(p -> !p.isEmpty()).map(Path::of)
            .filter(p -> Files.isReadable(p.resolve(name))).findFirst().orElse(null);
        skipUnless(include != null, "no " + name);
        String text = Files.readString(include.resolve(name));
        Matcher found = Pattern.compile("#define\\s+" + version + "\\s+(\\d+)").matcher(text);
        assertTrue(found.find(), name + " must define " + version + ": " + include);
        skipUnless(Integer.parseInt(found.group(1)) == described,
            name + " is version " + found.group(1) + ", the description is of " + described);
        return new Header(include, text);
    }

    private static void skipUnless(boolean condition, String reason) {
        if (!condition) {
            System.out.println("cuda-api conformance skipped: " + reason);
        }
        Assumptions.assumeTrue(condition, "skipped: " + reason);
    }

    /**
     * Compiles a description against the headers.
     *
     * @param folder for the source.
     * @param headers that the source includes.
     * @param define a macro that makes the headers declare every exported name.
     * @param appended further text of the source.
     * @return the compiler's errors; empty when it accepts the source.
     */
    String compile(Path folder, Library described, List<String> headers, String define, String appended)
        throws IOException, InterruptedException {
        CConformanceEmitter.emit(described, headers, new OutputFiles(folder, "Conformance."));
        Path source = folder.resolve("hws_" + described.name() + "_conformance.c");
        Files.writeString(source, Files.readString(source) + appended);
        List<String> command = new ArrayList<>(List.of("gcc", "-std=gnu11", "-fsyntax-only", "-D" + define,
            "-Werror=incompatible-pointer-types", "-Werror=implicit-function-declaration", "-I" + include,
            source.toString()));
        Process gcc = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes());
        assertTrue(gcc.waitFor(60, TimeUnit.SECONDS), "gcc must end");
        return gcc.exitValue() == 0 ? "" : output;
    }
}
