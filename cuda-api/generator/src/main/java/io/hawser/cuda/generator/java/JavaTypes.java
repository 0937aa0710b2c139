package io.hawser.cuda.generator.java;

import io.hawser.cuda.generator.model.CType;
import io.hawser.cuda.generator.model.Param;
import java.util.Locale;

/** Java's spelling of types and accessors. */
final class JavaTypes {
    private JavaTypes() {
    }

    /** Java's type of a number: the same size, signed or not. */
    static String number(CType type) {
        return switch (type) {
            case CType.Scalar scalar -> scalar.number().javaName();
            case CType.Enumeration ignored -> "int";
            default -> throw new IllegalArgumentException("a number must be a scalar or an enumerator: type="
                + type.name());
        };
    }

    /** The method of RecordReader and RecordWriter for a number. */
    static String accessor(CType type) {
        return switch (number(type)) {
            case "byte" -> "i8";
            case "short" -> "i16";
            case "int" -> "i32";
            case "long" -> "i64";
            case "float" -> "f32";
            default -> "f64";
        };
    }

    /** Layout of a number in native memory. */
    static String layout(CType type) {
        return "ValueLayout.JAVA_" + number(type).toUpperCase(Locale.ROOT);
    }

    /** The decoded type of a parameter of the request. */
    static String decoded(Param param) {
        return switch (param.shape()) {
            case NUMBER -> number(param.value());
            case HANDLE, NEW, DROP -> "long";
            case TEXT -> "String";
            case STRUCT -> param.isRecord() ? param.value().name() : "MemorySegment";
            case BYTES, HANDLES, INOUT -> "MemorySegment";
            default -> throw new IllegalArgumentException("not part of a request: parameter=" + param.name());
        };
    }

    /** Type of a value that the reply carries. */
    static String answered(Param param) {
        boolean number = param.value() != null && !(param.value() instanceof CType.Structure) && !param.isBuffer();
        return number ? number(param.value()) : "MemorySegment";
    }

    /** A number's value as unsigned 64 bits, for sizes. */
    static String unsigned(CType type, String value) {
        if (type instanceof CType.Scalar scalar) {
            return switch (scalar.number()) {
                case U8 -> "Byte.toUnsignedLong(" + value + ")";
                case U16 -> "Short.toUnsignedLong(" + value + ")";
                case U32 -> "Integer.toUnsignedLong(" + value + ")";
                default -> value;
            };
        }
        return value;
    }

    /** {@code hStream} becomes {@code H_STREAM}. */
    static String upper(String name) {
        return name.replaceAll("([a-z0-9])([A-Z])", "$1_$2").toUpperCase(Locale.ROOT);
    }

    /** A sentence for Javadoc. */
    static String html(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
    }
}
