package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.ArrayList;
import java.util.List;

/** Writes the interfaces of the calls that are manual in the worker. */
final class JavaManualEmitter {
    private final Library library;

    JavaManualEmitter(Library library) {
        this.library = library;
    }

    /** Name of the group's interface. */
    static String name(Group group) {
        return group.javaName() + "ManualCalls";
    }

    Code emit(Group group) {
        Code out = new Code();
        out.line("package %s;", library.javaPackage()).line();
        out.line("import io.hawser.cuda.CallContext;").line("import java.lang.foreign.MemorySegment;").line();
        out.block("""
            /**
             * Calls of this group whose worker code is hand-written. Their parameters are decoded and checked:
             * handles are native ones, with the guest's id as well if the call creates or destroys the handle.
             * Addresses with a described size are inside the session's memory. Each method ends the call, at once
             * or after {@code defer}; segments are valid until then, structures until the method returns.
             *
             * @param <C> the calls that the worker passes to its dispatcher.
             */""");
        out.open("public interface %s<C extends CallContext>", name(group));
        for (ApiFunction function : group.only(ApiFunction::manual)) {
            out.line("/** Manual: %s. */", JavaTypes.html(function.workerReason()));
            List<String> parameters = new ArrayList<>(List.of("C call"));
            parameters.addAll(parameters(function));
            out.line("void %s(%s);", function.symbol(), String.join(", ", parameters)).line();
        }
        return out.close();
    }

    private static List<String> parameters(ApiFunction function) {
        List<String> texts = new ArrayList<>();
        for (Param param : function.params()) {
            if (param.shape() == Shape.NEW) {
                texts.add("long " + param.name() + "Id");
            } else if (param.shape() == Shape.DROP) {
                texts.add("long " + param.name());
                texts.add("long " + param.name() + "Id");
            } else if (param.inRequest()) {
                texts.add(JavaTypes.decoded(param) + " " + param.name());
            }
        }
        return texts;
    }

    /** The generated dispatcher's arguments for the call, without the context. */
    static List<String> arguments(ApiFunction function) {
        return parameters(function).stream().map(text -> text.substring(text.indexOf(' ') + 1)).toList();
    }
}
