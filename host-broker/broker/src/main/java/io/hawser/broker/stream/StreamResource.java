package io.hawser.broker.stream;

import io.hawser.broker.events.Event;
import io.hawser.broker.history.History;
import io.hawser.broker.history.HistoryInfo;
import io.hawser.broker.model.Printable;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.rest.Caller;
import io.hawser.broker.vgpu.VgpuTable;
import io.quarkus.arc.ClientProxy;
import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Multi;
import io.vertx.core.Context;
import io.vertx.core.Vertx;
import jakarta.inject.Inject;
import jakarta.ws.rs.BadRequestException;
import jakarta.ws.rs.NotFoundException;
import jakarta.ws.rs.WebApplicationException;
import jakarta.ws.rs.core.Response;
import jakarta.ws.rs.sse.OutboundSseEvent;
import jakarta.ws.rs.sse.Sse;
import java.util.List;

/** Answers requests for the stream, events and history; nothing here blocks. */
@NonBlocking
public class StreamResource implements StreamApi {
    private static final int MAX_EVENTS = 1000;
    private static final int MIN_SECONDS = 10;
    private static final int MAX_SECONDS = 86_400;

    @Inject
    Watch watch;
    @Inject
    WorkerPools pools;
    @Inject
    VgpuTable vgpus;
    @Inject
    Caller caller;
    @jakarta.ws.rs.core.Context
    Sse sse;

    @Override
    public Multi<OutboundSseEvent> stream() {
        if (watch.isFull()) {
            throw new WebApplicationException("streams must be at most hawser.stream.max-clients: clients="
                + watch.clients(), Response.Status.SERVICE_UNAVAILABLE);
        }
        Context context = Vertx.currentContext();
        // The proxy works only for the current request.
        Caller identity = ClientProxy.unwrap(caller);
        return Multi.createFrom().publisher(watch.open(task -> context.runOnContext(nothing -> task.run()),
            identity::isStillValid))
            .map(this::event);
    }

    private OutboundSseEvent event(Frame frame) {
        OutboundSseEvent.Builder event = sse.newEventBuilder();
        return frame.name().isEmpty() ? event.comment("alive").build()
            : event.name(frame.name()).data(String.class, frame.json()).build();
    }

    @Override
    public List<Event> listEvents(String limit) {
        return watch.events().latest(number("limit", limit, 100, 1, MAX_EVENTS));
    }

    @Override
    public HistoryInfo getHistory(String gpu, String vgpu, String seconds) {
        int back = number("seconds", seconds, 600, MIN_SECONDS, MAX_SECONDS);
        if (gpu != null && vgpu != null) {
            throw new BadRequestException("history must be of a GPU or a vGPU, not of both");
        }
        if (gpu != null && pools.state().devices().stream().noneMatch(d -> d.uuid().equals(gpu))) {
            throw new NotFoundException("there is no such GPU: gpu=" + Printable.text(gpu, 64));
        }
        if (vgpu != null && vgpus.find(vgpu).isEmpty()) {
            throw new NotFoundException("there is no such vGPU: vgpu=" + Printable.text(vgpu, 64));
        }
        return watch.history(gpu != null ? new History.Key(History.Kind.GPU, gpu)
            : vgpu != null ? new History.Key(History.Kind.VGPU, vgpu) : History.Key.BROKER, back);
    }

    private static int number(String name, String text, int otherwise, int min, int max) {
        if (text == null) {
            return otherwise;
        }
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw new BadRequestException(name + " must be a number: " + Printable.text(text, 32), e);
        }
        throw new BadRequestException(name + " must be " + min + " to " + max + ": " + text);
    }
}
