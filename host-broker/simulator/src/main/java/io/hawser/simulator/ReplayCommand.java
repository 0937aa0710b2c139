package io.hawser.simulator;

import io.hawser.simulator.engine.Costs;
import io.hawser.simulator.engine.Simulation;
import io.hawser.simulator.replay.Replay;
import io.hawser.simulator.replay.WhatIf;
import io.hawser.simulator.report.Results;
import io.hawser.simulator.report.TenantResult;
import io.hawser.turns.RecordingException;
import io.hawser.turns.TurnRules;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code simulate replay}. */
@Command(name = "replay", sortOptions = false, mixinStandardHelpOptions = true,
    description = "Replays a broker's recording (hawser.turns.record). It compares each decision; a difference is exit"
        + " code 1. With other rules or costs it then simulates the recorded demands: each session's pauses and the GPU"
        + " time that it used.")
final class ReplayCommand implements Callable<Integer> {
    @Parameters(paramLabel = "FILE", description = "The recording.")
    private Path file;

    @Mixin
    private RuleOptions ruleOptions = new RuleOptions();
    @Mixin
    private CostOptions costOptions = new CostOptions();
    @Mixin
    private OutputOptions output = new OutputOptions();
    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, RecordingException {
        Replay replay = Replay.of(file);
        TurnRules rules;
        Costs costs;
        try {
            rules = ruleOptions.over(replay.rules());
            costs = costOptions.over(Costs.NONE);
        } catch (IllegalArgumentException e) {
            throw new ParameterException(spec.commandLine(), e.getMessage());
        }
        PrintWriter out = spec.commandLine().getOut();
        out.println(replay.difference() == null
            ? replay.decisions() + " decisions in " + replay.looks() + " looks replayed, all equal"
            : replay.decisions() + " decisions are equal, then one differs: " + replay.difference());
        if (replay.results().tenants().isEmpty()) {
            out.println("the recording has no session");
            return replay.difference() == null ? 0 : 1;
        }
        print(out, replay.results());
        boolean isOther = !rules.equals(replay.rules()) || !costs.equals(Costs.NONE);
        if (isOther && replay.difference() == null && replay.gpus() > 0) {
            out.println("simulated with " + rules + ":");
            Simulation simulation = new Simulation(rules, costs, replay.gpus(), null);
            WhatIf whatIf = new WhatIf(replay, simulation);
            Sampling sampling = new Sampling(simulation, replay.lengthNs());
            sampling.run(() -> whatIf.tenants().stream().map(tenant -> new Sampling.Sampled(tenant, tenant.vgpu()))
                .toList());
            List<TenantResult> results = whatIf.tenants().stream()
                .map(tenant -> Sampling.result(tenant, tenant.vgpu())).toList();
            print(out, new Results(results, replay.lengthNs(), replay.gpus()));
            output.plot(sampling.series(), file.getFileName() + ", other rules");
        } else {
            output.plot(replay.series(), file.getFileName().toString());
        }
        return replay.difference() == null ? 0 : 1;
    }

    private void print(PrintWriter out, Results results) {
        out.print(results.table(output.isEach()));
        out.println(results.summary());
    }
}
