package io.hawser.check;

/**
 * {@code hawser-check --shares}: how vGPUs share one GPU. Exit status: 0 after a measurement, 1 if a program failed, 2
 * for a wrong command line.
 */
public final class SharesMain {
    private SharesMain() {
    }

    /** Measures, and ends the process with the exit status; returns after {@code --help}. */
    public static void main(String[] args) {
        SharesOptions options;
        try {
            options = SharesOptions.parse(args);
        } catch (UsageException e) {
            System.exit(Standalone.refuse(e, "--shares"));
            return;
        }
        if (options.help()) {
            System.out.print(SharesOptions.USAGE);
            return;
        }
        System.exit(Standalone.run(false, options.keep(), (installation, children, workplace) -> {
            try (Progress progress = new Progress()) {
                SharesReport report = new Shares(options, installation, children, workplace, progress).run();
                progress.close();
                System.out.print(report.text(options.markdown()));
                options.json().ifPresent(report::write);
                return report.isGood();
            }
        }));
    }
}
