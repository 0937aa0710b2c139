package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.emit.OutputFiles;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Description;
import io.hawser.cuda.generator.model.ForeignClass;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import java.io.IOException;

/** Writes all Java files of a description. */
public final class JavaEmitters {
    private static final String SHARED = "io/hawser/cuda/generated/";

    private JavaEmitters() {
    }

    /** Writes the files of all libraries, or only those of the named library. */
    public static void emit(Description description, String only, OutputFiles files) throws IOException {
        files.write(SHARED + "HandleKind.java", JavaConstantsEmitter.handleKinds(description));
        files.write(SHARED + "Description.java", JavaConstantsEmitter.hash(description));
        for (Library library : description.libraries()) {
            if (only == null || library.name().equals(only)) {
                new LibraryFiles(library, files).emit();
            }
        }
    }

    /** The files of one library. */
    private record LibraryFiles(Library library, OutputFiles files) {
        void emit() throws IOException {
            write("package-info", new Code().line("/** Generated from the description of the library %s. */",
                library.name()).line("package %s;", library.javaPackage()));
            if (!library.travelling().isEmpty()) {
                travelling();
            }
            write(library.javaName() + "Macros", JavaConstantsEmitter.macros(library));
            for (Enumeration type : library.types().all(Enumeration.class)) {
                write(type.name(), JavaConstantsEmitter.enumeration(library, type));
            }
            for (Structure type : library.types().all(Structure.class)) {
                write(type.name(), JavaConstantsEmitter.structure(library, type));
            }
            JavaForeignEmitter foreign = new JavaForeignEmitter(library);
            write(library.javaName() + "Foreign", foreign.driver());
            for (ForeignClass type : library.foreignClasses()) {
                write(type.name(), foreign.functions(type));
            }
        }

        /** Writes the classes that serve records, and the guest's side of the records. */
        private void travelling() throws IOException {
            write("client.package-info", new Code()
                .line("/** The guest's side in Java, for tests and tools: requests and replies of %s. */",
                    library.name())
                .line("package %s.client;", library.javaPackage()));
            write(library.javaName() + "Opcodes", JavaConstantsEmitter.opcodes(library));
            JavaDispatchEmitter dispatch = new JavaDispatchEmitter(library);
            write(library.javaName() + "Driver", new JavaDriverEmitter(library).driver());
            write(library.javaName() + "Form", new JavaDriverEmitter(library).forms());
            write(library.javaName() + "Dispatcher", dispatch.dispatcher());
            for (Group group : library.groups()) {
                if (group.travelling().isEmpty()) {
                    continue;
                }
                if (!group.only(ApiFunction::manual).isEmpty()) {
                    write(JavaManualEmitter.name(group), new JavaManualEmitter(library).emit(group));
                }
                write(group.javaName() + "Dispatch", dispatch.group(group));
                write(group.javaName() + "Replies", new JavaRepliesEmitter(library).writers(group));
                write("client." + group.javaName() + "Requests", new JavaRequestsEmitter(library).emit(group));
                write("client." + group.javaName() + "ReplyReader", new JavaRepliesEmitter(library).readers(group));
            }
        }

        private void write(String name, Code text) throws IOException {
            if (text != null) {
                files.write((library.javaPackage() + "." + name).replace('.', '/') + ".java", text);
            }
        }
    }
}
