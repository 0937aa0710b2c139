package io.hawser.floors.sample.stray;

import io.hawser.floors.sample.low.Low;

/** Uses a lower floor. */
public final class Stray {
    /** The use. */
    public Low below;
}
