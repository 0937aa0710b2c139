package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;
import java.util.Locale;

/** By what vGPUs that share a GPU are kept apart in time. */
public enum TurnMode {
    /** Turns given by this broker. */
    TURNS,
    /** NVIDIA's MPS: workers use the GPU together, each as much of it as its percentage says. */
    MPS,
    /** Nothing: the driver slices time between processes. */
    OFF;

    /** As REST names it. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * The mode that settings and machine make.
     *
     * @param mps the folder of MPS; null with the software GPU.
     * @throws IllegalArgumentException when the setting is none of its words.
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
