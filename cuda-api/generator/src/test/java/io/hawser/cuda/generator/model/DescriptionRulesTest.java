package io.hawser.cuda.generator.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.cuda.generator.model.Wire.Slot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DescriptionRulesTest {
    private static final String FUNCTION = """
        library: toy
        group: toy
        functions:
          - symbol: toyCall
            opcode: 0x0001
            since: 1.0
            reply: sync
            params:
              - { name: flag, type: char, dir: in }
              - { name: count, type: int, dir: in }
              - { name: hStream, type: CUstream, dir: in }
              - { name: data, type: "const void *", dir: in, bytes: count, max: 64, limit: "sizes a buffer" }
              - { name: location, type: "CUmemLocation *", dir: in }
              - { name: result, type: "short *", dir: out }
        """;

    @TempDir
    private Path folder;

    @BeforeEach
    void write() throws IOException {
        Files.createDirectory(folder.resolve("toy"));
        Files.writeString(folder.resolve("libraries.yaml"), "libraries: [cuda, toy]");
        Files.writeString(folder.resolve("toy/library.yaml"), """
            { library: toy, number: 99, uses: cuda, soname: libtoy.so, javaName: Toy, result: CUresult,
              guestHeader: toy.h,
              errors: { invalidValue: A, invalidHandle: B, outOfMemory: C, notSupported: D },
              types: [], groups: [toy], foreign: foreign }
            """);
        writeForeign("{}");
    }

    @Test
    void shouldPlaceEachValueAtItsNaturalAlignment() throws IOException {
        ApiFunction function = read(FUNCTION).library("toy").functions().getFirst();
        assertEquals(List.of(0, 4, 8, 16, 24), function.request().slots().stream().map(Slot::offset).toList());
        assertEquals(32, function.request().fixedBytes());
        assertEquals(8, function.answer().fixedBytes());
        assertEquals(99 << 16 | 1, function.opcode());
    }

    @Test
    void shouldChangeHashWithWireButNotWithReasons() throws IOException {
        long hash = read(FUNCTION).hash();
        assertNotEquals(hash, read(FUNCTION.replace("type: int", "type: int64_t")).hash());
        assertNotEquals(hash, read(FUNCTION.replace("0x0001", "0x0002")).hash());
        assertNotEquals(hash, read(FUNCTION.replace("max: 64", "max: 65")).hash());
        assertEquals(hash, read(FUNCTION.replace("sizes a buffer", "some other reason")).hash());
    }

    @Test
    void shouldHashStructureAsItsNumbers() throws IOException {
        String location = "{ name: location, type: \"CUmemLocation *\", dir: in }";
        String numbers = "{ name: type, type: int, dir: in }\n      - { name: id, type: %s, dir: in }";
        String aligned = FUNCTION.replaceFirst("      - \\{ name: data.*\\n", "");
        long hash = read(aligned).hash();
        assertEquals(hash, read(aligned.replace(location, numbers.formatted("int"))).hash());
        assertNotEquals(hash, read(aligned.replace(location, numbers.formatted("short"))).hash());
    }

    @Test
    void shouldKeepHashWhenFunctionsMove() throws IOException {
        String second = FUNCTION.substring(FUNCTION.indexOf("  - symbol")).replace("0x0001", "0x0002")
            .replace("toyCall", "toySecond");
        String first = FUNCTION.substring(FUNCTION.indexOf("  - symbol"));
        String head = FUNCTION.substring(0, FUNCTION.indexOf("  - symbol"));
        assertEquals(read(head + first + second).hash(), read(head + second + first).hash());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "opcode: 0x0001|context: true|a function has an opcode unless it is local",
        "since: 1.0|context: true|an exported function must have since",
        "reply: sync|reply: async|only a synchronous function has outputs",
        "reply: sync|reply: sometimes|No enum constant",
        "max: 64, limit: \"sizes a buffer\"|max: 64|a buffer must have max and limit",
        "bytes: count|bytes: location|a size must use numbers of the call only",
        "CUmemLocation *|CUlaunchConfig *|a value on the wire must contain neither pointer nor handle",
        "CUmemLocation *|HwsExtent *|a record is for functions that are manual in the worker",
        "bytes: count|bytes: location.id|a size must use numbers of the call only",
        "CUmemLocation *|void *|a value on the wire must contain neither pointer nor handle",
        "type: CUstream|type: CUgraphDeviceNode|a handle that travels must have a kind",
        "name: flag|name: driver|generated code needs this name",
        "short *|CUstream *|a value on the wire must contain neither pointer nor handle",
        "reply: sync|backend: false, reply: sync|a function without a backend method is manual",
        "reply: sync|gate: sometimes, reply: sync|No enum constant",
        "name: result|surprise: 1, name: result|Unrecognized field",
        "reply: sync|wire: [hwsMissing], reply: sync|wire must name functions that have records: wire=hwsMissing",
        "reply: sync|wire: [cuDriverGetVersion], reply: sync|wire must name functions that have records",
        "reply: sync|memo: true, reply: sync|memo is for synchronous questions without work and buffers",
        "bytes: count|workspace: missing|a size must use numbers of the call only: name=missing",
        "symbol: toyCall|symbol: hwsCall|the wire of an exported function must name it",
    })
    void shouldRefuse(String part, String replacement, String rule) {
        assertTrue(FUNCTION.contains(part), part);
        String broken = FUNCTION.replace(part, replacement.replace(", reply: sync", "\n    reply: sync"));
        Exception e = assertThrows(Exception.class, () -> read(broken));
        assertTrue(e.getMessage().contains(rule), e.getMessage());
    }

    @Test
    void shouldRefuseWorkWithoutStream() {
        String broken = FUNCTION.replace("type: CUstream", "type: CUevent").replace("    params:",
            "    gate: issues\n    params:");
        DescriptionException e = assertThrows(DescriptionException.class, () -> read(broken));
        assertTrue(e.getMessage().contains("has a parameter of type CUstream"), e.getMessage());
    }

    @Test
    void shouldRefuseWireOfFunctionThatIsNotExported() {
        String broken = FUNCTION.replace("toyCall", "hwsCall")
            .replace("    params:", "    wire: [hwsCall]\n    params:");
        DescriptionException e = assertThrows(DescriptionException.class, () -> read(broken));
        assertTrue(e.getMessage().contains("wire is for exported functions"), e.getMessage());
    }

    @Test
    void shouldRefuseFunctionThatIsDescribedTwice() {
        String twice = FUNCTION + FUNCTION.substring(FUNCTION.indexOf("  - symbol")).replace("0x0001", "0x0002");
        assertThrows(DescriptionException.class, () -> read(twice));
    }

    @Test
    void shouldListForeignFunctionsByClass() throws IOException {
        writeForeign("ToyNative: [toyCall]");
        Library toy = read(FUNCTION).library("toy");
        assertEquals(List.of(new ForeignClass("ToyNative", toy.functions())), toy.foreignClasses());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "ToyNative: [toyCall, toyMissing]|toyMissing",
        "ToyNative: [hwsToy]|hwsToy",
        "ToyNative: [cuInit]|cuInit",
        "ToyNative: [toyCall, toyCall]|toyCall",
        "{ ToyNative: [toyCall], OtherNative: [toyCall] }|toyCall",
    })
    void shouldRefuseForeignClassThatListsOtherFunctions(String classes, String symbol) throws IOException {
        writeForeign(classes);
        String functions = FUNCTION + FUNCTION.substring(FUNCTION.indexOf("  - symbol")).replace("toyCall", "hwsToy")
            .replace("0x0001", "0x0002");
        Exception e = assertThrows(DescriptionException.class, () -> read(functions));
        assertTrue(e.getMessage().startsWith(symbol + ": a foreign class lists exported functions of its library"),
            e.getMessage());
    }

    private void writeForeign(String classes) throws IOException {
        Files.writeString(folder.resolve("toy/foreign.yaml"), classes);
    }

    private Description read(String functions) throws IOException {
        Files.writeString(folder.resolve("toy/toy.yaml"), functions);
        return new DescriptionReader(Source.folder(folder)).read();
    }
}
