package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Library;
import java.io.IOException;
import java.util.List;

/**
 * Writes a C file that compiles only if the description agrees with the library's own headers in every enumerator,
 * size, offset and prototype. The file includes those headers, not Hawser's.
 */
public final class CConformanceEmitter {
    private final Library library;
    private final Code out = new Code();

    private CConformanceEmitter(Library library) {
        this.library = library;
    }

    /** Writes {@code hws_<library>_conformance.c}. */
    public static void emit(Library library, List<String> headers, OutputFiles files) throws IOException {
        files.write("hws_" + library.name() + "_conformance.c", new CConformanceEmitter(library).file(headers));
    }

    private Code file(List<String> headers) {
        headers.forEach(header -> out.line("#include <%s>", header));
        out.line("#include <stddef.h>").line("#include <stdint.h>").line();
        for (Enumeration type : library.types().all(Enumeration.class)) {
            type.values().forEach((name, value) -> proof(String.format("(long long) %s == %dLL", name, value), name));
            proof("sizeof(" + type.name() + ") == 4", type.name());
        }
        library.types().macros().forEach((name, text) -> {
            if (text.matches("-?(0x[0-9a-fA-F]+|\\d+)")) {
                proof(name + " == " + text, name);
            }
        });
        library.types().scalars().forEach((name, base) -> proof("__builtin_types_compatible_p(" + name + ", " + base
            + ")", name));
        library.types().aliases().forEach((name, type) -> proof("sizeof(" + name + ") == sizeof(" + type + ")", name));
        for (Structure type : library.types().all(Structure.class)) {
            // The library's headers do not have Hawser's own structures.
            if (!type.name().startsWith("Hws")) {
                proof("sizeof(" + type.name() + ") == " + type.size(), type.name());
                fields(type.name(), "", 0, type);
            }
        }
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
                CNames.suffixes(function).forEach(suffix -> prototype(function, suffix));
            }
        }
        return out;
    }

    private void fields(String owner, String path, int base, Structure type) {
        for (Field field : type.fields()) {
            String name = path + field.name();
            int offset = base + field.offset();
            if (field.anonymous()) {
                fields(owner, path, offset, (Structure) field.type());
                continue;
            }
            proof(String.format("offsetof(%s, %s) == %d", owner, name, offset), owner + "." + name);
            proof(String.format("sizeof(((%s *) 0)->%s) == %d", owner, name, field.size()), owner + "." + name);
            if (field.type() instanceof Structure inner && inner.name() == null) {
                fields(owner, name + ".", offset, inner);
            }
        }
    }

    private void prototype(ApiFunction function, String suffix) {
        String name = function.symbol() + suffix;
        out.line("%s (*const hws_check_%s)(%s) = %s;", library.returns(function), name,
            CNames.parameters(function.params()), name);
    }

    private void proof(String condition, String name) {
        out.line("_Static_assert(%s, \"%s\");", condition, name);
    }
}
