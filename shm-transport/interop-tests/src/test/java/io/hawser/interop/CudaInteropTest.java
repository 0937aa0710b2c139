package io.hawser.interop;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.DescriptionReader;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Source;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.function.ThrowingConsumer;

/** Every described function of the Driver API, in both languages. */
class CudaInteropTest {
    @TempDir
    private static Path folder;
    private static Library library;
    private static CProgram program;
    private static InteropSuite suite;

    @BeforeAll
    static void build() throws Exception {
        Description description = new DescriptionReader(Source.classPath()).read();
        library = description.library("cuda");
        program = CProgram.start(description, folder);
        suite = new InteropSuite(new GeneratedJava(library, CudaInteropTest.class.getClassLoader()), program);
    }

    @AfterAll
    static void end() throws Exception {
        program.close();
    }

    @TestFactory
    Stream<DynamicTest> shouldRoundTrip() {
        return each(suite::shouldRoundTrip);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseEveryOtherLengthOfRequest() {
        return each(suite::shouldRefuseEveryOtherLengthOfRequest);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseBufferOfOtherLengthThanDescribed() {
        return each(suite::shouldRefuseBufferOfOtherLengthThanDescribed);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseEveryOtherLengthOfReply() {
        return each(suite::shouldRefuseEveryOtherLengthOfReply);
    }

    private static Stream<DynamicTest> each(ThrowingConsumer<ApiFunction> rule) {
        return library.travelling().stream().map(function -> dynamicTest(function.symbol(),
                () -> rule.accept(function)));
    }
}
