package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Whose a vGPU is, as it is listed: {@code domain:UUID}, {@code host:NAME}, or {@code none}. */
record Owner(String kind, String id) {
    /** As the interface wants it. */
    Map<String, Object> body() {
        Map<String, Object> object = new LinkedHashMap<>();
        object.put("kind", kind);
        object.put("id", id);
        return object;
    }

    /** Options that name one. */
    static final class Converter implements ITypeConverter<Owner> {
        @Override
        public Owner convert(String text) {
            String[] parts = text.split(":", 2);
            if (!(text.equals("none") || parts.length == 2 && List.of("domain", "host").contains(parts[0]))) {
                throw new TypeConversionException("an owner is domain:UUID, host:NAME or none: " + text);
            }
            return new Owner(parts[0], parts.length == 2 ? parts[1] : "");
        }
    }
}
