package io.hawser.gpu.software.dnn;

import java.lang.reflect.Field;

/** Names of the library's constants, for messages. */
final class Names {
    private Names() {
    }

    /** The name of a constant of a generated class; the number itself for none. */
    static String of(Class<?> constants, long value) {
        try {
            for (Field field : constants.getFields()) {
                if (field.getType() == int.class && field.getInt(null) == value) {
                    return field.getName();
                }
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException("constants are public: " + constants, e);
        }
        return Long.toString(value);
    }
}
