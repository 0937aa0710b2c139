package io.hawser.check;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/** The figures of a measurement with their targets. One thread. */
final class Goals {
    /**
     * A figure.
     *
     * @param value in the unit that the name states.
     * @param nativeValue the same of native programs; empty if none ran.
     */
    record Goal(String name, Way way, double value, OptionalDouble nativeValue, Target target) {
        Optional<Boolean> isReached() {
            return target.isReached(value, nativeValue, OptionalDouble.empty());
        }

        private OptionalDouble ratio() {
            return nativeValue.isEmpty() ? nativeValue : OptionalDouble.of(value / nativeValue.getAsDouble());
        }
    }

    private final List<Goal> goals = new ArrayList<>();

    void add(String name, Way way, double value, OptionalDouble nativeValue, Target target) {
        goals.add(new Goal(name, way, value, nativeValue, target));
    }

    /** The table; empty without figures. */
    String text(boolean markdown) {
        if (goals.isEmpty()) {
            return "";
        }
        Table table = new Table("llrrll", "figure", "way", "value", "/native", "target", "reached");
        for (Goal goal : goals) {
            table.row(goal.name, goal.way.label(), TextReport.value(OptionalDouble.of(goal.value)),
                TextReport.value(goal.ratio()), goal.target.text(),
                goal.isReached().map(reached -> reached ? "yes" : "no").orElse("-"));
        }
        return table.text(markdown);
    }

    /** Adds the figures to a file of results. */
    void write(ArrayNode list) {
        for (Goal goal : goals) {
            ObjectNode node = list.addObject().put("figure", goal.name).put("way", goal.way.label())
                .put("value", JsonReport.finite(goal.value));
            goal.nativeValue.ifPresent(value -> node.put("native", value));
            if (!goal.target.text().isEmpty()) {
                node.put("target", goal.target.text());
            }
            goal.isReached().ifPresent(reached -> node.put("reached", reached));
        }
    }
}
