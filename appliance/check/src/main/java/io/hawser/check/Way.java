package io.hawser.check;

import java.util.Locale;

/** How a program reaches a GPU. */
enum Way {
    /** By the machine's own driver. */
    NATIVE,
    /** Through Hawser over TCP. */
    TCP,
    /** Through Hawser over shared memory. */
    SHM;

    /** As options, tables and the guest's statistics name it. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
