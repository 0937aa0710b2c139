package io.hawser.floors.sample.low;

import io.hawser.floors.sample.high.High;

/** Uses a higher floor, in an array only. */
public final class Low {
    /** The use. */
    public High[] above;
}
