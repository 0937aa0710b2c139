package io.hawser.floors.sample.high;

/** Uses no other package. */
public final class High {
}
