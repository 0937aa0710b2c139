package io.hawser.ctl.command;

import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options that say where a vGPU moves. */
final class Destination {
    @Option(names = "--gpu", paramLabel = "GPU",
        description = "The other GPU: number or UUID; same gives the sessions new workers on their GPU.")
    private String gpu;
    @Option(names = "--broker", paramLabel = "NAME",
        description = "Another broker of the pool, where the programs connect. Without --gpu any of its GPUs.")
    private String broker;

    /** Checks that there is one of the options. */
    void check(CommandLine command) {
        if (gpu == null && broker == null) {
            throw new ParameterException(command, "--gpu or --broker is needed");
        }
    }

    /** The request's body. */
    Map<String, String> body() {
        Map<String, String> body = new LinkedHashMap<>();
        if (gpu != null) {
            body.put("gpu", gpu);
        }
        if (broker != null) {
            body.put("broker", broker);
        }
        return body;
    }
}
