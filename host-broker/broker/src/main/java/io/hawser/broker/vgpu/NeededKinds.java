package io.hawser.broker.vgpu;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.WorkerKind;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;

/** The kinds of workers that the broker keeps ready for its vGPUs. */
final class NeededKinds {
    /**
     * Under MPS, the number of percentages on one set of GPUs for which the broker keeps workers ready; each worker
     * costs GPU memory.
     */
    private static final int MAX_PERCENTAGES = 4;

    private NeededKinds() {
    }

    /**
     * That of each vGPU with a network of its own, and for each set of GPUs that other vGPUs have, the percentages that
     * most of them have.
     *
     * @param percentage of a vGPU, as in {@link WorkerKind}.
     */
    static Set<WorkerKind> of(Stream<VgpuEntry> entries, ToIntFunction<Vgpu> percentage) {
        Map<List<String>, Map<Integer, Integer>> users = new LinkedHashMap<>();
        Set<WorkerKind> kinds = new LinkedHashSet<>();
        entries.filter(entry -> entry.state == VgpuState.READY).forEach(entry -> {
            int part = percentage.applyAsInt(entry.vgpu);
            if (entry.vgpu.network().isEmpty()) {
                users.computeIfAbsent(entry.home, home -> new LinkedHashMap<>()).merge(part, 1, Integer::sum);
            } else {
                kinds.add(new WorkerKind(entry.home, part, entry.vgpu.network()));
            }
        });
        users.forEach((home, percentages) -> percentages.entrySet().stream()
            .sorted(Map.Entry.<Integer, Integer>comparingByValue().reversed()).limit(MAX_PERCENTAGES)
            .forEach(used -> kinds.add(new WorkerKind(home, used.getKey()))));
        return kinds;
    }
}
