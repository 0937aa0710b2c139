package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.Library;
import java.util.Map;
import java.util.TreeMap;

/** Writes the lists: opcodes, results, look-up of functions by name and version, exports without a description. */
final class CTablesEmitter {
    /** CUDA 7.0 added the per-thread default stream, and variants of the existing functions for it. */
    private static final int PER_THREAD_SINCE = 7000;

    private final Library library;

    CTablesEmitter(Library library) {
        this.library = library;
    }

    Code opcodes() {
        Code out = new Code();
        String guard = "HWS_" + library.upperName() + "_OPCODES_H";
        out.line("#ifndef %s", guard).line("#define %s", guard).line();
        for (ApiFunction function : library.travelling()) {
            out.line("#define %s 0x%08xu", CNames.opcode(function), function.opcode());
        }
        out.line().line("#endif");
        return out;
    }

    Code results() {
        Code out = new Code();
        out.line("/* HWS_RESULT(name, value, text), in the order of values. */");
        library.types().resultTexts().forEach((name, text) -> out.line("HWS_RESULT(%s, %d, \"%s\")", name,
            value(name), text));
        return out;
    }

    private long value(String name) {
        return library.types().all(Enumeration.class).stream()
            .filter(e -> e.name().equals(library.result())).findFirst().orElseThrow().values().get(name);
    }

    /** Rows ordered by name, stream flag and version: the last row that fits is the newest. */
    Code procs() {
        Map<String, String> rows = new TreeMap<>();
        for (ApiFunction function : library.functions()) {
            if (function.exported()) {
                for (String suffix : CNames.suffixes(function)) {
                    row(rows, function.symbol() + suffix, suffix.isEmpty() ? function.since()
                        : Math.max(function.since(), PER_THREAD_SINCE));
                }
            }
        }
        library.unsupported().forEach((symbol, since) -> {
            if (since > 0) {
                row(rows, symbol, since);
            }
        });
        Code out = new Code();
        out.line("/* HWS_PROC(base name, first version with it, 1 for a per-thread default stream variant, symbol),");
        out.line("   sorted by name, flag, version. */");
        rows.values().forEach(out::line);
        return out;
    }

    private static void row(Map<String, String> rows, String symbol, int since) {
        String name = ApiFunction.baseName(symbol);
        int perThread = symbol.matches(".*_pt[sd][zs]") ? 1 : 0;
        rows.put(String.format("%s %d %06d", name, perThread, since),
            String.format("HWS_PROC(\"%s\", %d, %d, %s)", name, since, perThread, symbol));
    }

    Code unsupported() {
        Code out = new Code();
        out.line("#include \"%s\"", library.guestHeader()).line();
        out.line("/* Exports without a description: callers pass arguments that the function ignores. */");
        for (String name : library.unsupported().keySet()) {
            out.line("HWS_EXPORT %s %s(void);", library.result(), name);
            out.open("HWS_EXPORT %s %s(void)", library.result(), name);
            out.line("return hws_unsupported(\"%s\");", name);
            out.close();
        }
        return out;
    }

    /** Functions of the library above without an implementation, one a line. */
    Code refused() {
        Code out = new Code();
        out.line("/* HWS_REFUSED(function of the library above). */");
        library.refused().forEach(name -> out.line("HWS_REFUSED(%s)", name));
        return out;
    }

    /** Declarations of {@link #unsupported}, for the look-up table. */
    Code unsupportedHeader() {
        Code out = new Code();
        String guard = "HWS_" + library.upperName() + "_UNSUPPORTED_H";
        out.line("#ifndef %s", guard).line("#define %s", guard).line();
        out.line("#include \"hws_%s_types.h\"", library.name()).line();
        library.unsupported().keySet().forEach(name -> out.line("%s %s(void);", library.result(), name));
        out.line().line("#endif");
        return out;
    }
}
