package io.hawser.broker.turns;

import io.hawser.broker.config.BrokerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/** By what vGPUs that share a GPU are kept apart in time. */
public enum TurnMode {
    /** Turns given by this broker. */
    TURNS,
    /** NVIDIA's MPS: workers use the GPU together, each as much of it as its percentage says. */
    MPS,
    /** Nothing: the driver slices time between processes. */
    OFF;

    private static final String PIPES = "CUDA_MPS_PIPE_DIRECTORY";
    private static final String DEFAULT_PIPES = "/tmp/nvidia-mps"; // where NVIDIA's daemon and driver look by default

    /** As REST names it. */
    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * The mode that settings and machine make.
     *
     * @param environment of the broker.
     * @throws IllegalArgumentException when the setting is none of its words.
     */
    public static TurnMode of(BrokerConfig config, Map<String, String> environment) {
        String mode = config.turns().mode();
        return switch (mode) {
            case "on" -> TURNS;
            case "off" -> OFF;
            case "auto" -> !config.gpu().backend().equals("software") && isMpsRunning(pipes(environment)) ? MPS : TURNS;
            default -> throw new IllegalArgumentException("hawser.turns.mode must be auto, on or off: mode=" + mode);
        };
    }

    /** Folder of the daemon's pipes. */
    static Path pipes(Map<String, String> environment) {
        return Path.of(environment.getOrDefault(PIPES, DEFAULT_PIPES));
    }

    /** Whether an MPS control daemon has its pipes there, and lives. */
    static boolean isMpsRunning(Path pipes) {
        if (!Files.exists(pipes.resolve("control"))) {
            return false;
        }
        Path pid = pipes.resolve("nvidia-cuda-mps-control.pid");
        if (!Files.exists(pid)) {
            return true; // the daemon's process may be in another name space
        }
        try {
            return Files.exists(Path.of("/proc", Files.readString(pid).strip()));
        } catch (IOException | IllegalArgumentException e) {
            return true; // there, and not ours to read
        }
    }
}
