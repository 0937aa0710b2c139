package io.hawser.cuda.generator.c;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Scalar;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Group;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Writes the table of a library's exported functions for a program that calls them with arguments of its choice
 * (appliance/programs/cuda/random_calls). The program defines the macros.
 */
final class CCallTableEmitter {
    private final Library library;

    CCallTableEmitter(Library library) {
        this.library = library;
    }

    Code table() {
        Code out = new Code();
        out.line("/* HWS_ENUM(type, values...)");
        out.line("   HWS_FIELDS(structure, {name, type, offset, bytes}...): its numbers and those of inner structures");
        out.line("   HWS_CALL(symbol, group, result, (parameters), (arguments), {type, name}...) */");
        for (Enumeration type : library.types().all(Enumeration.class)) {
            out.line("HWS_ENUM(%s, %s)", type.name(), type.values().values().stream().distinct().map(String::valueOf)
                .collect(Collectors.joining(", ")));
        }
        for (Structure type : library.types().all(Structure.class)) {
            List<String> fields = new ArrayList<>();
            numbers(type, "", 0, fields);
            if (!type.name().startsWith("Hws") && !fields.isEmpty()) {
                out.line("HWS_FIELDS(%s, %s)", type.name(), String.join(", ", fields));
            }
        }
        for (Group group : library.groups()) {
            group.only(ApiFunction::exported).forEach(function -> out.line(call(group, function)));
        }
        return out;
    }

    private static void numbers(Structure type, String path, int base, List<String> out) {
        for (Field field : type.fields()) {
            String name = path + field.name();
            int offset = base + field.offset();
            if (field.type() instanceof Structure inner) {
                numbers(inner, field.anonymous() ? path : name + ".", offset, out);
            } else if (field.type() instanceof Scalar || field.type() instanceof Enumeration) {
                out.add(String.format("{\"%s\", \"%s\", %d, %d}", name, field.type().name(), offset,
                    field.type().size()));
            }
        }
    }

    private String call(Group group, ApiFunction function) {
        StringBuilder arguments = new StringBuilder();
        StringBuilder rows = new StringBuilder();
        for (Param param : function.params()) {
            arguments.append(arguments.isEmpty() ? "" : ", ").append("hws_argument<").append(param.type())
                .append(">(a[").append(function.params().indexOf(param)).append("])");
            rows.append(", {\"").append(param.type()).append("\", \"").append(param.name()).append("\"}");
        }
        return "HWS_CALL(" + function.symbol() + ", " + group.name() + ", " + library.result() + ", ("
            + CNames.parameters(function.params()) + "), (" + arguments + ")" + rows + ")";
    }
}
