package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.emit.Code;
import io.hawser.cuda.generator.model.ApiFunction;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Library;
import io.hawser.cuda.generator.model.Param;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Writes the classes of argument records, and the dispatcher's objects of them. The dispatcher reuses its objects,
 * because a new one for each call would be garbage: the compiler does not always remove it.
 */
final class JavaRecordEmitter {
    private JavaRecordEmitter() {
    }

    static void open(Code out, Structure type) {
        out.line("import io.hawser.shm.wire.RecordReader;").line();
        out.block("""
            /**
             * The numbers of a %s, with the layout of its bytes. A dispatcher reuses its objects: the numbers of an
             * argument are valid until the method that receives it returns. One thread at a time.
             */""".formatted(type.name()));
        out.open("public final class %s", type.name());
    }

    static void members(Code out, Structure type) {
        for (Field field : type.fields()) {
            out.line(field.type() instanceof Structure ? "private final %s %s;" : "private %s %s;", javaType(field),
                field.name());
        }
        out.line().line("/** Makes an object of zeros. */").open("public %s()", type.name());
        type.fields().stream().filter(f -> f.type() instanceof Structure)
            .forEach(f -> out.line("%s = new %s();", f.name(), javaType(f)));
        out.close().line().line("/** Makes an object of these numbers. */");
        out.open("public %s(%s)", type.name(), type.fields().stream().map(f -> javaType(f) + " " + f.name())
            .collect(Collectors.joining(", ")));
        type.fields().forEach(f -> out.line("this.%s = %s;", f.name(), f.name()));
        out.close().line().open("void read(RecordReader in, int at)");
        for (Field field : type.fields()) {
            out.line(field.type() instanceof Structure ? "%1$s.read(in, at + %3$d);"
                : "this.%1$s = in.%2$s(at + %3$d);", field.name(),
                field.type() instanceof Structure ? ""
                    : JavaTypes.accessor(field.type()),
                field.offset());
        }
        out.close();
        for (Field field : type.fields()) {
            out.line().line("/** The field {@code %s}. */", field.name());
            out.open("public %s %s()", javaType(field), field.name()).line("return %s;", field.name()).close();
        }
    }

    private static String javaType(Field field) {
        return field.type() instanceof Structure inner ? inner.name() : JavaTypes.number(field.type());
    }

    /** The dispatcher's fields: of each type as many objects as one call needs. */
    static void fields(Code out, Library library) {
        new TreeSet<>(library.travelling().stream().flatMap(f -> objects(f).stream()).toList())
            .forEach(name -> out.line("private final %1$s %2$s = new %1$s();", name.replaceFirst("\\d+$", ""),
                field(name)));
    }

    /** The dispatcher's objects for a call, as arguments. */
    static String arguments(ApiFunction function) {
        return objects(function).stream().map(name -> ", " + field(name)).collect(Collectors.joining());
    }

    /** The same objects, as parameters. */
    static String parameters(ApiFunction function) {
        return function.params().stream().filter(Param::isRecord).map(p -> ", " + p.value().name() + " " + p.name())
            .collect(Collectors.joining());
    }

    private static String field(String name) {
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }

    /** A name for each of the call's records: its type, and its number among those of the same type. */
    private static List<String> objects(ApiFunction function) {
        Map<String, Integer> counts = new HashMap<>();
        List<String> names = new ArrayList<>();
        function.params().stream().filter(Param::isRecord).map(p -> p.value().name())
            .forEach(type -> names.add(type + counts.merge(type, 1, Integer::sum)));
        return names;
    }
}
