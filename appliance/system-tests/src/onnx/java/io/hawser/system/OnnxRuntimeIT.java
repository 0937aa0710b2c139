package io.hawser.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ai.onnxruntime.OrtEnvironment;
import com.google.protobuf.CodedOutputStream;
import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** ONNX Runtime's CUDA provider as Microsoft builds it, in a Java program, over each carrier. */
class OnnxRuntimeIT {
    private static final List<String> NATIVE = List.of("libonnxruntime.so", "libonnxruntime4j_jni.so",
        "libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so");

    @TempDir
    private static Path folder;
    private static BrokerProcess broker;

    @BeforeAll
    static void startBroker() throws Exception {
        unpackNativeLibraries();
        makeNvrtc();
        broker = BrokerProcess.start("onnx", folder.resolve("broker"), Map.of());
    }

    @AfterAll
    static void stopBroker() {
        if (broker != null) {
            broker.close();
        }
    }

    /** Unpacks the libraries once; each program would unpack its own 380 MiB. */
    private static void unpackNativeLibraries() throws IOException, URISyntaxException {
        try (FileSystem jar = FileSystems.newFileSystem(origin(OrtEnvironment.class))) {
            for (String name : NATIVE) {
                Files.copy(jar.getPath("ai/onnxruntime/native/linux-x64", name), folder.resolve(name));
            }
        }
    }

    /** The provider is linked to this library and calls none of its functions; machines without CUDA have none. */
    private static void makeNvrtc() throws IOException, InterruptedException {
        String soname = "libnvrtc.so.12";
        Process gcc = new ProcessBuilder("gcc", "-shared", "-o", folder.resolve(soname).toString(),
            "-Wl,-soname," + soname, "-x", "c", "/dev/null").redirectErrorStream(true).start();
        String output = new String(gcc.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, gcc.waitFor(), output);
    }

    /** The jar or the folder with a class. */
    private static Path origin(Class<?> type) throws URISyntaxException {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    @ParameterizedTest
    @EnumSource
    void shouldComputeEachModelAsTheCpuDoes(Carrier carrier) throws Exception {
        List<String> classes = new ArrayList<>();
        for (Class<?> type : List.of(OnnxProgram.class, OrtEnvironment.class, CodedOutputStream.class)) {
            classes.add(origin(type).toString());
        }
        Map<String, String> environment = new HashMap<>(carrier.environment(broker));
        environment.put("LD_LIBRARY_PATH", folder.toString());
        try (GuestProgram program = GuestProgram.startByCommand(environment, "onnx",
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "--enable-native-access=ALL-UNNAMED",
            "-Donnxruntime.native.path=" + folder, "-cp", String.join(File.pathSeparator, classes),
            OnnxProgram.class.getName())) {
            GuestProgram.Result result = program.await().assertPassed().assertOver(carrier);
            long right = result.out().lines().filter(line -> line.startsWith("right ")).count();
            assertTrue(result.out().endsWith("PASS onnx: " + right + " models\n"), result::toString);
            assertTrue(result.hawserLines().isEmpty(), result::toString);
        }
        broker.awaitIdle();
    }
}
