package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** The owner of a vGPU in the form of the list: {@code domain:UUID}, {@code host:NAME}, or {@code none}. */
record Owner(String kind, String id) {
    /** The form in the REST interface. */
    Map<String, Object> body() {
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("kind", kind);
        object.put("id", id);
        return object;
    }

    /** Parses an option's value. */
    static final class Converter implements ITypeConverter<Owner> {
        @Override
        public Owner convert(String text) {
            String[] parts = text.split(":", 2);
            if (!(text.equals("none") || parts.length == 2 && List.of("domain", "host").contains(parts[0]))) {
                throw new TypeConversionException("an owner must be domain:UUID, host:NAME or none: " + text);
            }
            return new Owner(parts[0], parts.length == 2 ? parts[1] : "");
        }
    }
}
