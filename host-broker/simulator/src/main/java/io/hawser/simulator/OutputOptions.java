package io.hawser.simulator;

import io.hawser.simulator.report.ShareSeries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import picocli.CommandLine.Option;

/** Options of tables and plots. */
final class OutputOptions {
    @Option(names = "--each", description = "Prints a row for each vGPU.")
    private boolean isEach;

    @Option(names = "--plot", paramLabel = "FILE", description = "Writes a plot of shares against time, as SVG: a line"
        + " for each of up to 12 vGPUs, else for each load.")
    private Path plot;

    @Option(names = "--title", paramLabel = "TEXT", description = "Title of the plot.")
    private String title;

    boolean isEach() {
        return isEach;
    }

    boolean hasPlot() {
        return plot != null;
    }

    void plot(ShareSeries series, String defaultTitle) throws IOException {
        if (plot != null) {
            Files.writeString(plot, series.plot(title == null ? defaultTitle : title).svg());
        }
    }
}
