package io.hawser.broker.view;

import io.hawser.broker.admin.MoveService;
import java.util.List;

/** A GPU or a broker that an operator drains, or no longer drains; see openapi.yml. */
public record DrainInfo(String gpu, String broker, boolean drained, List<MoveInfo> moved, List<Stayed> stayed) {
    /** A vGPU that is still on the GPU. */
    public record Stayed(String vgpu, String reason) {}

    /** The answer for a drain. */
    public static DrainInfo of(MoveService.Drained drained) {
        return new DrainInfo(drained.gpu(), drained.broker(), true, drained.moved().stream().map(MoveInfo::of).toList(),
            drained.stayed().stream().map(one -> new Stayed(one.vgpu(), one.reason())).toList());
    }

    /** The answer for the end of a drain. */
    public static DrainInfo undrained(String gpu, String broker) {
        return new DrainInfo(gpu, broker, false, List.of(), List.of());
    }
}
