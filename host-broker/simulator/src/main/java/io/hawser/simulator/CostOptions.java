package io.hawser.simulator;

import io.hawser.simulator.engine.Costs;
import picocli.CommandLine.Option;

/** Options of the costs of a change of turn. */
final class CostOptions {
    @Option(names = "--switch", paramLabel = "TIME", description = "Time of a GPU's switch to another process (run:"
        + " 100us, replay: 0).", converter = RuleOptions.Nanoseconds.class)
    private Long switchNs;

    @Option(names = "--wake-up", paramLabel = "TIME", description = "Time in which a worker wakes up for its turn (run:"
        + " 50us, replay: 0).", converter = RuleOptions.Nanoseconds.class)
    private Long wakeUpNs;

    @Option(names = "--guest-wake-up", paramLabel = "TIME", description = "Delay of a guest's next launch after a wait"
        + " of over 1 ms (0).", converter = RuleOptions.Nanoseconds.class)
    private Long guestWakeUpNs;

    /** The given costs with the values of the options that are present. */
    Costs over(Costs costs) {
        return new Costs(switchNs == null ? costs.switchNs() : switchNs, wakeUpNs == null ? costs.wakeUpNs() : wakeUpNs,
            guestWakeUpNs == null ? costs.guestWakeUpNs() : guestWakeUpNs);
    }
}
