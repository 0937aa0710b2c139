package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** Writes all C files of a description. */
public final class CEmitters {
    private CEmitters() {
    }

    /** Writes the guest's files of all libraries, or only those of the named library. */
    public static void emit(Description description, String only, OutputFiles files) throws IOException {
        files.write("hws_description.h", CTypesEmitter.shared(description));
        files.write("hws_wire.h", resource("hws_wire.h"));
        for (Library library : description.libraries()) {
            if (only != null && !library.name().equals(only)) {
                continue;
            }
            String prefix = "hws_" + library.name() + "_";
            CTablesEmitter tables = new CTablesEmitter(library);
            files.write(prefix + "types.h", new CTypesEmitter().emit(library));
            files.write(prefix + "functions.h", CTypesEmitter.functions(library));
            files.write(prefix + "results.inc", tables.results());
            files.write(prefix + "unsupported.h", tables.unsupportedHeader());
            files.write(prefix + "unsupported.c", tables.unsupported());
            files.write(prefix + "refused.inc", tables.refused());
            if (library.travelling().isEmpty()) {
                continue; // the guest answers each function
            }
            files.write(prefix + "opcodes.h", tables.opcodes());
            files.write(prefix + "procs.inc", tables.procs());
            files.write(prefix + "call_table.inc", new CCallTableEmitter(library).table());
            CCallsEmitter calls = new CCallsEmitter(library);
            files.write(prefix + "calls.h", calls.header());
            for (Group group : library.groups()) {
                if (!group.travelling().isEmpty()) {
                    files.write(prefix + "calls_" + group.name() + ".c", calls.source(group));
                }
                Code stubs = new CStubsEmitter(library).source(group);
                if (stubs != null) {
                    files.write(prefix + "stubs_" + group.name() + ".c", stubs);
                }
            }
        }
    }

    static String resource(String name) throws IOException {
        try (InputStream in = CEmitters.class.getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
