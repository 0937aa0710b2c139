package io.hawser.simulator;

import io.hawser.simulator.engine.Durations;
import io.hawser.turns.TurnRules;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** Options of the scheduler's rules. */
final class RuleOptions {
    @Option(names = "--quantum", paramLabel = "TIME", description = "Length of a turn: hawser.turns.quantum.",
        converter = Nanoseconds.class)
    private Long quantumNs;

    @Option(names = "--grace", paramLabel = "TIME", description = "Grace for work that outlasts its turn:"
        + " hawser.turns.grace.", converter = Nanoseconds.class)
    private Long graceNs;

    @Option(names = "--linger", paramLabel = "TIME", description = "How long an idle vGPU keeps its turn:"
        + " hawser.turns.linger.", converter = Nanoseconds.class)
    private Long lingerNs;

    @Option(names = "--turn-parts", paramLabel = "N", description = "A turn lasts at least the quantum / N; a broker"
        + " has " + TurnRules.TURN_PARTS + ".")
    private Integer turnParts;

    @Option(names = "--first-lingers", paramLabel = "N", description = "Multiple of the linger before the first return"
        + " in a turn; a broker has " + TurnRules.FIRST_LINGERS + ".")
    private Integer firstLingers;

    @Option(names = "--late-returns", paramLabel = "N", description = "Soon returns that a late one outweighs; a broker"
        + " has " + TurnRules.LATE_RETURNS + ".")
    private Integer lateReturns;

    /** Parses a time. */
    static final class Nanoseconds implements ITypeConverter<Long> {
        @Override
        public Long convert(String text) {
            try {
                return Durations.parse(text);
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(e.getMessage());
            }
        }
    }

    /** The given rules with the values of the options that are present. */
    TurnRules over(TurnRules rules) {
        return new TurnRules(quantumNs == null ? rules.quantumNs() : quantumNs,
            graceNs == null ? rules.graceNs() : graceNs, lingerNs == null ? rules.lingerNs() : lingerNs,
            turnParts == null ? rules.turnParts() : turnParts,
            firstLingers == null ? rules.firstLingers() : firstLingers,
            lateReturns == null ? rules.lateReturns() : lateReturns);
    }

    /**
     * Rules with another value.
     *
     * @throws IllegalArgumentException if there is no such rule, or the value is none.
     */
    static TurnRules with(TurnRules rules, String name, String value) {
        RuleOptions options = new RuleOptions();
        switch (name) {
            case "quantum" -> options.quantumNs = Durations.parse(value);
            case "grace" -> options.graceNs = Durations.parse(value);
            case "linger" -> options.lingerNs = Durations.parse(value);
            case "turn-parts" -> options.turnParts = Integer.valueOf(value);
            case "first-lingers" -> options.firstLingers = Integer.valueOf(value);
            case "late-returns" -> options.lateReturns = Integer.valueOf(value);
            default -> throw new IllegalArgumentException("a rule must be quantum, grace, linger, turn-parts,"
                + " first-lingers or late-returns: " + name);
        }
        return options.over(rules);
    }
}
