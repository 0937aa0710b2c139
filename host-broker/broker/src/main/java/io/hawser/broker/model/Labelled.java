package io.hawser.broker.model;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** An enum constant whose label in REST, settings and database is its name in lower case with hyphens. */
public interface Labelled {
    /** The name of the enum constant. */
    String name();

    /** The label outside the code. */
    default String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * The constant of a label.
     *
     * @param what names the field in the message.
     * @throws VgpuException of kind INVALID when no constant has the label; the message lists the labels.
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
