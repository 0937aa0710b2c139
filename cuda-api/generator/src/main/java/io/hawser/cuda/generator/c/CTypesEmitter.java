package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Handle;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.HandleKind;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.TypeTable;

/**
 * Writes {@code hws_<library>_types.h}, the library's types, and {@code hws_<library>_functions.h}, its prototypes,
 * which the first includes. The guest's code then needs no NVIDIA header.
 */
final class CTypesEmitter {
    private final Code out = new Code();

    Code emit(Library library) {
        String guard = "HWS_" + library.upperName() + "_TYPES_H";
        out.line("#ifndef %s", guard).line("#define %s", guard).line();
        out.line("#include \"hws_description.h\"");
        if (library.uses() != null) {
            out.line("#include \"hws_%s_types.h\"", library.uses().name());
        }
        out.line();
        out.line("#include <stddef.h>").line("#include <stdint.h>").line();
        TypeTable types = library.types();
        types.macros().forEach((name, text) -> out.line(("#define " + name + " " + text).stripTrailing()));
        out.line();
        for (Handle handle : types.all(Handle.class)) {
            out.line("typedef struct %s *%s;", handle.tag(), handle.name());
        }
        out.line();
        types.scalars().forEach((name, base) -> out.line("typedef %s %s;", base, name));
        types.opaque().forEach(name -> out.line("typedef struct %s %s;", name, name));
        types.all(Enumeration.class).forEach(this::enumeration);
        out.line();
        types.callbacks().forEach((name, text) -> out.line("typedef %s;", text.replaceFirst("\\(\\*\\)",
            "(*" + name + ")")));
        types.all(Structure.class).forEach(this::structure);
        out.line();
        types.aliases().forEach((name, type) -> out.line("typedef %s %s;", type, name));
        out.line().line("#include \"hws_%s_functions.h\"", library.name());
        out.line().line("#endif");
        return out;
    }

    /** Writes {@code hws_description.h}: the definitions that all libraries share. */
    static Code shared(Description description) {
        Code out = new Code();
        out.line("#ifndef HWS_DESCRIPTION_H").line("#define HWS_DESCRIPTION_H").line();
        out.line("/* Both ends compare it at the handshake: it changes with the bytes of any record. */");
        out.line("#define HWS_DESCRIPTION_HASH 0x%016xull", description.hash()).line();
        out.line("/* Kinds of handles: a handle is kind << 40 | id. */");
        out.open("typedef enum hws_kind");
        description.kinds().forEach(kind -> out.line("HWS_KIND_%s = %d, /* %s */", kind.name(), kind.number(),
            kind.doc()));
        out.close("} hws_kind_t;").line();
        int most = description.kinds().stream().mapToInt(HandleKind::number).max().orElse(0) + 1;
        out.line("#define HWS_KIND_COUNT %d /* one more than the largest */", most).line();
        out.line("#endif");
        return out;
    }

    private void enumeration(Enumeration type) {
        out.line().open("typedef enum %s", type.tag());
        type.values().forEach((name, value) -> out.line("%s = %s,", name, literal(value)));
        out.close("} " + type.name() + ";");
    }

    static String literal(long value) {
        return value == Integer.MIN_VALUE ? "(-2147483647 - 1)" : value > Integer.MAX_VALUE
            ? "0x" + Long.toHexString(value) : Long.toString(value);
    }

    private void structure(Structure type) {
        String tag = type.tag() == null ? "" : " " + type.tag();
        out.line().open("typedef %s%s", type.union() ? "union" : "struct", tag);
        type.fields().forEach(this::field);
        out.close("} " + type.name() + ";");
        out.line("_Static_assert(sizeof(%s) == %d, \"\");", type.name(), type.size());
    }

    private void field(Field field) {
        String array = field.elements() == 0 ? "" : "[" + field.elements() + "]";
        CType type = field.type();
        if (type instanceof Structure inner && inner.name() == null) {
            out.open(inner.union() ? "union" : "struct");
            inner.fields().forEach(this::field);
            out.close((field.anonymous() ? "}" : "} " + field.name() + array) + ";");
        } else {
            out.line("%s%s%s;", spaced(type.name()), field.name(), array);
        }
    }

    /** Writes {@code hws_<library>_functions.h}, one function a line. */
    static Code functions(Library library) {
        Code out = new Code();
        String guard = "HWS_" + library.upperName() + "_FUNCTIONS_H";
        out.line("#ifndef %s", guard).line("#define %s", guard).line();
        out.line("/* The exported functions. Their types come first: hws_%s_types.h or the library's own header. */",
            library.name());
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
                for (String suffix : CNames.suffixes(function)) {
                    out.line("%s%s%s(%s);", spaced(library.returns(function)), function.symbol(), suffix,
                        CNames.parameters(function.params()));
                }
            }
        }
        return out.line().line("#endif");
    }

    static String spaced(String type) {
        return type.endsWith("*") ? type : type + " ";
    }
}
