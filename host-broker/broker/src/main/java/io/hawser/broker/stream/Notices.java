package io.hawser.broker.stream;

import io.hawser.broker.events.Event;
import io.hawser.broker.events.EventLog;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.VgpuInfo;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Function;

/** Makes events from the differences of two pictures: GPUs, vGPUs and regions that appeared, disappeared or changed. */
final class Notices {
    private final EventLog log;

    Notices(EventLog log) {
        this.log = log;
    }

    /** Adds the events for the differences of two pictures. */
    void compare(Picture before, Picture after) {
        pool(before.broker().poolProblem(), after.broker().poolProblem());
        each(before.gpus(), after.gpus(), GpuInfo::uuid, this::gpu);
        each(before.vgpus(), after.vgpus(), VgpuInfo::name, this::vgpu);
        each(before.regions(), after.regions(), RegionInfo::name, this::region);
    }

    /** Calls for each difference with the item before and after; null where it does not exist. */
    private static <T> void each(List<T> before, List<T> after, Function<T, String> key,
        BiConsumer<T, T> onDifference) {
        Map<String, T> old = HashMap.newHashMap(before.size());
        before.forEach(one -> old.put(key.apply(one), one));
        for (T now : after) {
            T was = old.remove(key.apply(now));
            if (!now.equals(was)) {
                onDifference.accept(was, now);
            }
        }
        old.values().forEach(gone -> onDifference.accept(gone, null));
    }

    private void pool(String before, String after) {
        // The time in a problem's text grows, which is no news.
        if (before.isEmpty() != after.isEmpty() || !withoutNumbers(before).equals(withoutNumbers(after))) {
            add(Event.Kind.ADMIN, after.isEmpty() ? Event.Severity.INFO : Event.Severity.ERROR, "", after.isEmpty()
                ? "The broker is a member of its pool in good standing again" : "Pool: " + after);
        }
    }

    private static String withoutNumbers(String text) {
        return text.replaceAll("[0-9]+", "");
    }

    private void gpu(GpuInfo was, GpuInfo now) {
        if (was == null) {
            add(Event.Kind.GPU, Event.Severity.INFO, "", "GPU " + now.name() + " is there: " + now.uuid());
        } else if (now == null) {
            add(Event.Kind.GPU, Event.Severity.ERROR, "", "GPU " + was.name() + " is gone: " + was.uuid());
            return;
        }
        if (now.drained() != (was != null && was.drained())) {
            add(Event.Kind.GPU, Event.Severity.INFO, "", "GPU " + now.index() + " " + now.name()
                + (now.drained() ? " is drained and gets no further vGPUs (" : " gets vGPUs again (") + now.uuid()
                + ")");
        }
        String before = was == null ? "ok" : was.health();
        if (!now.health().equals(before)) {
            add(Event.Kind.GPU, now.health().equals("ok") ? Event.Severity.INFO : now.health().equals("lost")
                ? Event.Severity.ERROR : Event.Severity.WARNING, "", "GPU " + now.index() + " " + now.name() + " is "
                    + now.health() + (now.healthDetail().isEmpty() ? "" : ": " + now.healthDetail()) + " (" + now.uuid()
                    + ")");
        }
    }

    private void vgpu(VgpuInfo was, VgpuInfo now) {
        if (was == null) {
            add(Event.Kind.VGPU, Event.Severity.INFO, now.name(), "vGPU " + now.name() + " was made");
        } else if (now == null) {
            add(Event.Kind.VGPU, Event.Severity.INFO, was.name(), "vGPU " + was.name() + " was deleted");
            return;
        } else if (!was.id().equals(now.id())) {
            add(Event.Kind.VGPU, Event.Severity.INFO, now.name(), "vGPU " + now.name()
                + " was deleted and created again");
        } else if (!Objects.equals(was.changed(), now.changed())) {
            add(Event.Kind.VGPU, Event.Severity.INFO, now.name(), "vGPU " + now.name() + " was changed");
        }
        if (now.state().equals("unplaced") && (was == null || !was.state().equals("unplaced"))) {
            add(Event.Kind.VGPU, Event.Severity.WARNING, now.name(), "vGPU " + now.name() + " has no GPU: "
                + now.problem());
        } else if (was != null && was.state().equals("unplaced") && now.state().equals("ready")) {
            add(Event.Kind.VGPU, Event.Severity.INFO, now.name(), "vGPU " + now.name() + " has its GPUs again");
        }
        if (was != null && was.id().equals(now.id()) && was.swap() != null && now.swap() != null
            && was.swap().resident() != now.swap().resident()) {
            add(Event.Kind.SWAP, Event.Severity.INFO, now.name(), "The memory of vGPU " + now.name()
                + (now.swap().resident() ? " is on its GPU again" : " has left its GPU: swappedBytes="
                    + now.swap().swappedBytes()));
        }
    }

    private void region(RegionInfo was, RegionInfo now) {
        if (was == null) {
            add(Event.Kind.REGION, Event.Severity.INFO, now.vgpu(), "Region " + now.name() + " is served");
        } else if (now == null) {
            add(Event.Kind.REGION, Event.Severity.INFO, was.vgpu(), "Region " + was.name() + " is no longer served");
        } else if (now.state().equals("failed") && !was.state().equals("failed")) {
            add(Event.Kind.REGION, Event.Severity.ERROR, now.vgpu(), "Region " + now.name() + " has failed: "
                + now.problem());
        }
    }

    private void add(Event.Kind kind, Event.Severity severity, String vgpu, String text) {
        log.add(kind, severity, vgpu, 0, text);
    }
}
