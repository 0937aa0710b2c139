package io.hawser.broker.vgpu;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import java.util.List;

/** A vGPU of the table. Event loop only. */
final class VgpuEntry {
    Vgpu vgpu;
    List<String> home; // its GPUs, or its last GPUs
    VgpuState state = VgpuState.WAITING;
    String problem = "";
    String closed = ""; // why the vGPU refuses guests for now
    String destination = ""; // UUID of the GPU to which it moves with its sessions; empty while it does not
    int sessions;
    int tokens;

    VgpuEntry(Vgpu vgpu, List<String> home) {
        this.vgpu = vgpu;
        this.home = List.copyOf(home);
    }

    /** Whether the vGPU counts on a GPU: a moving vGPU counts on both of its GPUs. */
    boolean isOn(String uuid) {
        return times(uuid) > 0;
    }

    /** How often the vGPU counts on a GPU: twice while its sessions get other workers on the same GPU. */
    int times(String uuid) {
        return state != VgpuState.READY ? 0 : (home.contains(uuid) ? 1 : 0) + (destination.equals(uuid) ? 1 : 0);
    }

    /** Why the vGPU takes no guest and no change now; null when it does. */
    String objection() {
        return !closed.isEmpty() ? closed : destination.isEmpty() ? null : "the vGPU is being moved: vgpu="
            + vgpu.name();
    }

    VgpuView view() {
        return new VgpuView(vgpu, state, problem, state == VgpuState.READY ? home : List.of(), sessions, tokens);
    }
}
