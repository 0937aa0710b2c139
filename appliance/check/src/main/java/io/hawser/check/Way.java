package io.hawser.check;

import java.util.Locale;

/** The way of a program to a GPU. */
enum Way {
    /** Through the machine's own driver. */
    NATIVE,
    /** Through Hawser over TCP. */
    TCP,
    /** Through Hawser over shared memory. */
    SHM;

    /** The name in options, tables and the guest's statistics. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
