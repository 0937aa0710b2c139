package io.hawser.cuda.generator.yaml;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;

/**
 * A file of functions of one kind of object.
 *
 * @param library name of the library.
 * @param group name of the group.
 * @param local why local functions are manual in the guest, for those without a reason of their own.
 * @param functions its functions, each a {@link FunctionYaml}.
 */
public record GroupYaml(String library, String group, String local, List<JsonNode> functions) {

    /**
     * A function.
     *
     * @param symbol exported name, or a name that exists only on the wire.
     * @param forms forms of the library for which the description is repeated, with consecutive opcodes; null for none.
     *     In its texts, {@code <T>} is the form's letter, {@code <name>} a text of the form, and {@code <i>} the bytes
     *     of an integer.
     * @param wide whether each is followed by a function with the suffix _64, whose int parameters are int64_t.
     * @param opcode number within the library, of the first; null when it does not travel.
     * @param since first version that has it, for example 11.2; null for wire functions.
     * @param returns C's type of its result; null for the library's result type.
     * @param reply sync, async, probe, data or local; null with {@code sameAs}.
     * @param credited whether it costs credit.
     * @param memo whether equal calls get the answer of the first one: the guest does not ask again.
     * @param gate waits, answers, issues or opens; null for none of these.
     * @param move none, set or pins; null for make where it creates a handle, for none where it ends one, and else for
     *     the library's.
     * @param guest generated (default) or {manual: reason}.
     * @param worker generated (default) or {manual: reason}.
     * @param backend whether the backend interface has it; default true for functions that travel.
     * @param context whether the guest refuses the call without a current context; default true for functions that
     *     travel.
     * @param ptsz whether it is also exported with _ptsz.
     * @param ptds whether it is also exported with _ptds.
     * @param sameAs the function that implements it.
     * @param with values for parameters of that function that this function lacks.
     * @param wire functions whose records carry it; null for none.
     * @param params parameters in C's order.
     */
    public record FunctionYaml(String symbol, List<String> forms, boolean wide, Integer opcode, String since,
        String returns, String reply,
        boolean credited, boolean memo, String gate, String move, JsonNode guest, JsonNode worker, Boolean backend,
        Boolean context,
        boolean ptsz, boolean ptds, String sameAs, Map<String, String> with, List<String> wire,
        List<ParamYaml> params) {
    }

    /**
     * A parameter.
     *
     * @param name C's name.
     * @param type C's type.
     * @param dir in, out, inout, new or drop.
     * @param bytes size of a buffer, an expression over parameters.
     * @param count number of elements of an array.
     * @param string whether it is a text.
     * @param max maximum size of a buffer or text in bytes.
     * @param limit the abuse that {@code max} stops.
     * @param nullable whether NULL is legal.
     * @param variable whether an output buffer may be shorter than {@code bytes}.
     * @param bulk whether a buffer is sent without copying it first; the last one only.
     * @param device bytes of the session's device memory required at an address.
     * @param unchecked reason why no size of the memory behind an address can be known.
     * @param descriptor the structure that travels in place of a descriptor that the guest keeps.
     * @param scalar bytes of a number behind a pointer, on host or device; an output travels back from the host.
     * @param workspace bytes of host memory that the call works in; the worker has its own.
     * @param scalars as {@code scalar}, for an array of up to 40 bytes.
     */
    public record ParamYaml(String name, String type, String dir, String bytes, String count, boolean string,
        Integer max, String limit, boolean nullable, boolean variable, boolean bulk, String device,
        String unchecked, String descriptor, String workspace, @JsonProperty("scalar") String scalar,
        String scalars) {
    }
}
