package io.hawser.broker.stream;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.SessionInfo;
import io.hawser.broker.view.VgpuInfo;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The differences between two pictures; see openapi.yml. {@code broker} is null when it has not changed. */
public record Change(Instant time, @JsonInclude(JsonInclude.Include.NON_NULL) BrokerInfo broker, List<GpuInfo> gpus,
    List<String> removedGpus, List<VgpuInfo> vgpus, List<String> removedVgpus, List<SessionInfo> sessions,
    List<Long> removedSessions, List<RegionInfo> regions, List<String> removedRegions) {

    /** The differences between two lists. */
    private record Difference<K, T>(List<T> changed, List<K> removed) {
        static <K, T> Difference<K, T> of(List<T> before, List<T> after, Function<T, K> key) {
            Map<K, T> old = HashMap.newHashMap(before.size());
            before.forEach(one -> old.put(key.apply(one), one));
            List<T> changed = new ArrayList<>();
            for (T one : after) {
                if (!one.equals(old.remove(key.apply(one)))) {
                    changed.add(one);
                }
            }
            return new Difference<>(changed, List.copyOf(old.keySet()));
        }
    }

    /** The differences from the first picture to the second. */
    static Change between(Picture before, Picture after) {
        Difference<String, GpuInfo> gpus = Difference.of(before.gpus(), after.gpus(), GpuInfo::key);
        Difference<String, VgpuInfo> vgpus = Difference.of(before.vgpus(), after.vgpus(), VgpuInfo::name);
        Difference<Long, SessionInfo> sessions = Difference.of(before.sessions(), after.sessions(), SessionInfo::id);
        Difference<String, RegionInfo> regions = Difference.of(before.regions(), after.regions(), RegionInfo::key);
        return new Change(after.time(), after.broker().equals(before.broker()) ? null : after.broker(),
            gpus.changed(), gpus.removed(), vgpus.changed(), vgpus.removed(), sessions.changed(), sessions.removed(),
            regions.changed(), regions.removed());
    }

    /** Whether nothing has changed. */
    boolean isNothing() {
        return broker == null && gpus.isEmpty() && removedGpus.isEmpty() && vgpus.isEmpty() && removedVgpus.isEmpty()
            && sessions.isEmpty() && removedSessions.isEmpty() && regions.isEmpty() && removedRegions.isEmpty();
    }
}
