package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Spelling of C's names and parameter lists. */
final class CNames {
    private CNames() {
    }

    static String opcode(ApiFunction function) {
        return "HWS_OPCODE_" + function.symbol();
    }

    /** "" and the further suffixes of the exported function. */
    static List<String> suffixes(ApiFunction function) {
        List<String> suffixes = new ArrayList<>(List.of(""));
        if (function.ptsz()) {
            suffixes.add("_ptsz");
        }
        if (function.ptds()) {
            suffixes.add("_ptds");
        }
        return suffixes;
    }

    /** The exported function's parameters. */
    static String parameters(List<Param> params) {
        return params.isEmpty() ? "void" : params.stream()
            .map(p -> CTypesEmitter.spaced(p.type()) + p.name()).collect(Collectors.joining(", "));
    }

    /** A parameter of {@code hws_call_...}: as in C, but a created handle by value and structures in wire form. */
    static String callType(Param param) {
        if (param.shape() == Shape.NEW) {
            return param.value().name();
        }
        if (param.scalar() != null && param.scalar().isResult()) {
            return param.value().name() + " *";
        }
        if (param.conversion() != null || param.scalar() != null) {
            return "const " + param.value().name() + " *";
        }
        return param.type();
    }

    /** Parameters of {@code hws_call_...}. */
    static String callParameters(ApiFunction function) {
        List<String> texts = new ArrayList<>();
        for (Param param : function.params()) {
            texts.add(CTypesEmitter.spaced(callType(param)) + param.name());
            if (param.variable()) {
                texts.add("uint32_t *" + param.name() + "_bytes_p");
            }
        }
        if (function.reply() == ApiFunction.Reply.DATA) {
            texts.add("const hws_target_t *hws_target");
            texts.add("bool hws_wait");
        }
        return texts.isEmpty() ? "void" : String.join(", ", texts);
    }

    static String callPrototype(Library library, ApiFunction function) {
        return library.result() + " hws_call_" + function.symbol() + "(" + callParameters(function) + ")";
    }

    /** A fixed-width C type for a value on the wire. */
    static String wireType(CType type) {
        return switch (type) {
            case CType.Scalar scalar -> scalar.number().cName();
            case CType.Enumeration ignored -> "int32_t";
            case CType.Handle ignored -> "uint64_t";
            case CType.Structure structure -> structure.name();
            case CType.Pointer pointer -> throw new IllegalArgumentException("a pointer does not travel: type="
                + pointer.name());
        };
    }
}
