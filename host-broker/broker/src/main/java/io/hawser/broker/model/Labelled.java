package io.hawser.broker.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** An enum's constant whose name in REST, settings and the database is its own in small letters, with hyphens. */
public interface Labelled {
    /** Of the enum. */
    String name();

    /** Its name outside of the code. */
    default String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * The constant of a label.
     *
     * @param what names the field in the message.
     * @throws VgpuException of kind INVALID when there is none; says which there are.
     */
    static <E extends Enum<E> & Labelled> E of(Class<E> type, String label, String what) throws VgpuException {
        for (E constant : type.getEnumConstants()) {
            if (constant.label().equals(label)) {
                return constant;
            }
        }
        throw VgpuException.invalid(what + " must be one of " + Arrays.stream(type.getEnumConstants())
            .map(Labelled::label).collect(Collectors.joining(", ")) + ": " + what + "=" + Texts.shown(label));
    }
}
