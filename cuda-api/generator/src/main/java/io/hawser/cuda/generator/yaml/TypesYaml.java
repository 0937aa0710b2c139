package io.hawser.cuda.generator.yaml;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/**
 * A file of types; every part is optional.
 *
 * @param handles opaque pointers, each with its kind on the wire.
 * @param kinds kinds of handles.
 * @param scalars names of numbers.
 * @param aliases second names of enumerations and structures.
 * @param callbacks C types of functions, {@code RESULT (*)(PARAMETERS)}.
 * @param opaque structures that only occur behind pointers.
 * @param macros macros of the library's header.
 * @param results the enumeration of results.
 * @param enums enumerations.
 * @param structs structures and unions.
 */
public record TypesYaml(Map<String, Handle> handles, List<Kind> kinds, Map<String, String> scalars,
    Map<String, String> aliases, Map<String, String> callbacks, List<String> opaque, Map<String, String> macros,
    Results results, Map<String, Enumeration> enums, Map<String, Structure> structs) {

    /** An opaque pointer. */
    public record Handle(String tag, String kind) {
    }

    /** A kind of handle; ids up to {@code special} are the library's own constants (CUDA's default streams). */
    public record Kind(String name, int number, String doc, int special) {
    }

    /** The enumeration of results, with texts. */
    public record Results(String type, String tag, Map<String, Result> values) {
    }

    /** A result. */
    public record Result(int value, String text) {
    }

    /** An enumeration. */
    public record Enumeration(String tag, Map<String, Long> values) {
    }

    /** A structure ({@code fields}) or a union; {@code record}: the worker receives it as an object. */
    public record Structure(String tag, boolean record, List<JsonNode> fields, List<JsonNode> union) {
    }
}
