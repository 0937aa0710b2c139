package io.hawser.check;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * What one program {@code tenant} measured.
 *
 * @param weight of its vGPU.
 * @param kernels that ended within the time.
 * @param middleMs median time from a launch to its end.
 * @param p99Ms time that 99 % of the launches do not exceed.
 * @param longestMs longest such time.
 */
record TenantFigures(int weight, long kernels, double middleMs, double p99Ms, double longestMs) {
    /** Reads the program's output. @throws CheckException if it has no figures. */
    static TenantFigures of(int weight, Guests.Started program) {
        return program.lines().stream().filter(line -> line.path("name").asText().equals("tenant"))
            .map(line -> of(weight, line)).findFirst()
            .orElseThrow(() -> new CheckException("a tenant must print its figures: " + program.out()));
    }

    /** Reads the line of figures. @throws CheckException if one is missing. */
    static TenantFigures of(int weight, JsonNode line) {
        return new TenantFigures(weight, (long) number(line, "kernels"), number(line, "middle_ms"),
            number(line, "p99_ms"), number(line, "longest_ms"));
    }

    /** The time of the kernel that {@code tenant --seconds 0} measures, in ms. */
    static double kernelMs(JsonNode line) {
        return number(line, "ms");
    }

    private static double number(JsonNode line, String name) {
        if (!line.path(name).isNumber()) {
            throw new CheckException("a tenant's line must have the number " + name + ": " + line);
        }
        return line.path(name).asDouble();
    }

    /** Its work. */
    Ratios.Part part() {
        return new Ratios.Part(weight, kernels);
    }
}
