package io.hawser.interop;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
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

/** Every described function of the Driver API and of the test library "shapes", in both languages. */
class InteropTest {
    static final Path SHAPES = Path.of(System.getProperty("hawser.root"),
        "cuda-api/generator/src/test/resources/shapes");

    @TempDir
    private static Path folder;
    private static Description description;
    private static CProgram program;

    @BeforeAll
    static void build() throws Exception {
        description = new DescriptionReader(Source.folder(SHAPES)).read();
        program = CProgram.start(description, folder);
    }

    @AfterAll
    static void end() throws Exception {
        program.close();
    }

    @TestFactory
    Stream<DynamicTest> shouldRoundTrip() {
        return each(InteropSuite::shouldRoundTrip);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseEveryOtherLengthOfRequest() {
        return each(InteropSuite::shouldRefuseEveryOtherLengthOfRequest);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseBufferOfOtherLengthThanDescribed() {
        return each(InteropSuite::shouldRefuseBufferOfOtherLengthThanDescribed);
    }

    @TestFactory
    Stream<DynamicTest> shouldRefuseEveryOtherLengthOfReply() {
        return each(InteropSuite::shouldRefuseEveryOtherLengthOfReply);
    }

    /** A rule for every function. */
    private interface Rule {
        void check(InteropSuite suite, ApiFunction function) throws Exception;
    }

    private static Stream<DynamicTest> each(Rule rule) {
        return description.libraries().stream().flatMap(library -> each(library, rule));
    }

    /** The library's own result; 46, CUDA_ERROR_DEVICE_UNAVAILABLE, for the driver. */
    private static int lost(Library library) {
        return library.errors().lost() == null ? 46 : ((CType.Enumeration) library.types().find(library.result()))
            .values().get(library.errors().lost()).intValue();
    }

    private static Stream<DynamicTest> each(Library library, Rule rule) {
        InteropSuite suite = new InteropSuite(new GeneratedJava(library, InteropTest.class.getClassLoader()), program,
            lost(library));
        return library.travelling().stream().map(function -> dynamicTest(function.symbol(),
            () -> rule.check(suite, function)));
    }
}
