package io.hawser.broker.session;

import io.hawser.broker.model.WorkerStats;
import java.util.HashMap;
import java.util.Map;
import java.util.function.ToLongFunction;

/** The use of each vGPU, without the totals of running sessions. Thread-safe. */
final class Usages {
    private final Map<String, VgpuUsage> usages = new HashMap<>();

    /** The use of a vGPU. */
    synchronized VgpuUsage of(String vgpu) {
        return usages.getOrDefault(vgpu, VgpuUsage.NONE);
    }

    /** Counts a session. */
    void start(String vgpu) {
        add(vgpu, VgpuUsage.NONE.withSession());
    }

    /** Counts the last totals of a session, unless its vGPU is gone. */
    synchronized void end(String vgpu, WorkerStats totals) {
        usages.computeIfPresent(vgpu, (name, usage) -> usage.plus(totals));
    }

    /** Counts what the vGPU has used elsewhere. */
    synchronized void add(String vgpu, VgpuUsage more) {
        usages.merge(vgpu, more, VgpuUsage::plus);
    }

    /** Notes the memory that the sessions hold now. */
    synchronized void sample(ToLongFunction<String> usedBytes) {
        usages.replaceAll((vgpu, usage) -> usage.withBytes(usedBytes.applyAsLong(vgpu)));
    }

    /** Forgets a vGPU. */
    synchronized void remove(String vgpu) {
        usages.remove(vgpu);
    }
}
