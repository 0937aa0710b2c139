package io.hawser.broker.vgpu;

import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuState;
import io.hawser.broker.model.VgpuView;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A vGPU of the table. Event loop only. */
final class VgpuEntry {
    private static final int MAX_WAITING = 256;

    Vgpu vgpu;
    List<String> home; // its GPUs, or its last GPUs
    VgpuState state = VgpuState.WAITING;
    String problem = "";
    int sessions;
    int tokens;
    private final List<CompletableFuture<Void>> waiting = new ArrayList<>();
    private String destination = ""; // UUID of the GPU to which it moves with its sessions; empty while it does not
    private String closed = ""; // why the vGPU refuses guests for now
    private boolean isClosedForMove;

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

    /** UUID of the GPU to which the vGPU moves with its sessions; empty while it does not. */
    String destination() {
        return destination;
    }

    /** Sets {@link #destination}. Guests wait until it is empty. */
    void moveTo(String uuid) {
        destination = uuid;
        admitWaiting();
    }

    /** Whether {@link #close} or {@link #closeForMove} keeps guests and changes out. */
    boolean isClosed() {
        return !closed.isEmpty();
    }

    /** Refuses guests and changes. */
    void close(String reason) {
        closed = reason;
        isClosedForMove = false;
        admitWaiting();
    }

    /** Refuses changes for a short time. Guests wait for its end. */
    void closeForMove(String reason) {
        closed = reason;
        isClosedForMove = true;
    }

    /** Ends {@link #close} and {@link #closeForMove}. */
    void open() {
        close("");
    }

    /** The table has the vGPU no longer. */
    void leave() {
        isClosedForMove = false;
        moveTo("");
    }

    /** Why the vGPU takes no guest and no change now; null when it does. */
    String objection() {
        return isClosed() ? closed : destination.isEmpty() ? null : "the vGPU is being moved: vgpu=" + vgpu.name();
    }

    private boolean isMoving() {
        return isClosedForMove || !destination.isEmpty();
    }

    /** As {@link VgpuTable#whenMoved}. */
    CompletableFuture<Void> whenMoved() {
        if (!isMoving() || waiting.size() >= MAX_WAITING) {
            return CompletableFuture.completedFuture(null);
        }
        CompletableFuture<Void> guest = new CompletableFuture<>();
        waiting.add(guest);
        return guest;
    }

    private void admitWaiting() {
        if (!isMoving()) {
            List<CompletableFuture<Void>> guests = List.copyOf(waiting);
            waiting.clear();
            guests.forEach(guest -> guest.complete(null));
        }
    }

    VgpuView view() {
        return new VgpuView(vgpu, state, problem, state == VgpuState.READY ? home : List.of(), sessions, tokens);
    }
}
