package io.hawser.poolsimulator.load;

import java.util.Optional;

/** A sequence of arrivals, the earliest first. For one thread. */
@FunctionalInterface
public interface Arrivals {
    /** The next one; empty after the last. */
    Optional<Arrival> next();
}
