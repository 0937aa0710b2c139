package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.pool.MpsFolder;
import java.util.Locale;

/** How vGPUs that share a GPU divide its time. */
public enum TurnMode {
    /** The broker gives turns. */
    TURNS,
    /** NVIDIA's MPS: workers use the GPU at the same time, each up to its percentage. */
    MPS,
    /** No turns: the driver slices time between processes. */
    OFF;

    /** Name in REST. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * Selects the mode by the settings and the machine.
     *
     * @param mps the folder of MPS; null with the software GPU.
     * @throws IllegalArgumentException when the setting has an unknown value.
     */
    public static TurnMode of(BrokerConfig config, MpsFolder mps) {
        String mode = config.turns().mode();
        return switch (mode) {
            case "on" -> TURNS;
            case "off" -> OFF;
            case "auto" -> mps != null && mps.isServed() ? MPS : TURNS;
            default -> throw new IllegalArgumentException("hawser.turns.mode must be auto, on or off: mode=" + mode);
        };
    }
}
