package io.hawser.cuda.generator.model;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.yaml.TypesYaml;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TypeTableTest {
    private TypeTable types;

    @BeforeEach
    void read() throws IOException {
        types = new DescriptionReader(Source.classPath()).read().library("cuda").types();
    }

    @Test
    void shouldLayOutStructuresAsC() {
        Structure copy = (Structure) types.find("CUDA_MEMCPY2D");
        assertEquals(128, copy.size());
        assertEquals(24, copy.fields().stream().filter(f -> f.name().equals("srcHost")).findFirst().orElseThrow()
            .offset());
        Structure config = (Structure) types.find("CUlaunchConfig");
        assertEquals(56, config.size());
    }

    @Test
    void shouldGiveUnionTheSizeOfItsLargestMember() {
        Structure value = (Structure) types.find("CUlaunchAttributeValue");
        assertEquals(64, value.size());
        assertTrue(value.fields().stream().allMatch(f -> f.offset() == 0));
    }

    @Test
    void shouldKnowThatPointersAndHandlesAreNotPlain() {
        assertTrue(types.find("CUmemLocation").plain());
        assertFalse(types.find("CUlaunchConfig").plain());
        assertFalse(types.find("CUlaunchAttributeValue").plain(), "an event is in the union");
    }

    @Test
    void shouldLayOutAnonymousMembersAsC() {
        Structure params = (Structure) types.find("CUgraphNodeParams");
        assertEquals(256, params.size());
        Field union = params.fields().get(2);
        assertTrue(union.anonymous());
        assertEquals(16, union.offset());
        assertEquals(232, union.size());
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "{ name: first, type: int }, { name: second, type: uint64_t }", // a gap
        "{ name: first, type: uint64_t }, { name: second, type: int }", // a gap at the end
        "{ name: 'first[2]', type: int }",
        "{ name: first, type: CUmemLocation }",
    })
    void shouldRefuseRecordWithMoreThanNumbersOrWithGaps(String fields) throws IOException {
        TypesYaml file = new ObjectMapper(new YAMLFactory()).readValue("structs: { HwsBroken: { tag: hws_broken, "
            + "record: true, fields: [" + fields + "] } }", TypesYaml.class);
        DescriptionException e = assertThrows(DescriptionException.class, () -> new TypeTable(types, List.of(file)));
        assertTrue(e.getMessage().startsWith("HwsBroken: a record has numbers and records without gaps"),
            e.getMessage());
    }

    @Test
    void shouldRefuseTypeThatIsNotDescribed() {
        assertThrows(DescriptionException.class, () -> types.find("CUnothing"));
    }
}
