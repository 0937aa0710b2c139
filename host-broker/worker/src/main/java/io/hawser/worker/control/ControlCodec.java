package io.hawser.worker.control;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.worker.channel.shm.SharedRegion;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Converts control messages to and from JSON text. Any thread. */
public final class ControlCodec {
    private final ObjectMapper mapper = new ObjectMapper();

    /**
     * Reads a message of the broker.
     *
     * @param json one frame.
     * @return the message, or null for an unknown type: a newer broker may send messages that this worker does not
     *     know.
     * @throws IOException if it is not a JSON object with a type, or a field has a wrong form.
     */
    public BrokerMessage decode(byte[] json) throws IOException {
        JsonNode node;
        try {
            node = mapper.readTree(json);
        } catch (JacksonException e) {
            throw new IOException("control message must be a JSON object: " + e.getOriginalMessage(), e);
        }
        if (node == null || !node.isObject()) {
            throw new IOException("control message must be a JSON object");
        }
        String name = node.path("type").asText("");
        if (name.isEmpty()) {
            throw new IOException("control message must have a type");
        }
        BrokerMessageType type = BrokerMessageType.of(name);
        return type == null ? null : decode(type, node);
    }

    private static BrokerMessage decode(BrokerMessageType type, JsonNode node) throws IOException {
        return switch (type) {
            case ASSIGN -> new BrokerMessage.Assign(number(node, "sessionId"), node.path("vgpu").asText(""),
                number(node, "memoryBytes"), node.path("peer").asText(""), node.path("program").asText(""),
                texts(node, "images"), place(node), node.path("rdma").asText(null),
                node.path("rdmaRefusal").asText(null), node.path("mayLeave").asBoolean());
            case LEDGER -> new BrokerMessage.Ledger(small(node, "slots"), small(node, "slot"), texts(node, "gpus"),
                numbers(node, "contextBytes"));
            case STORE -> new BrokerMessage.Store(node.path("sha256").asText(""));
            case IMAGE -> new BrokerMessage.Image(node.path("sha256").asText(""), number(node, "bytes"));
            case NO_IMAGE -> new BrokerMessage.NoImage(node.path("sha256").asText(""));
            case SHARED -> new BrokerMessage.Shared(node.path("name").asText(""), node.path("kept").asBoolean());
            case UNSHARED -> new BrokerMessage.Unshared(node.path("name").asText(""));
            case FOUND -> new BrokerMessage.Found(node.path("name").asText(""), node.path("handle").asText(""),
                number(node, "bytes"), small(node, "column"));
            case NOT_FOUND -> new BrokerMessage.NotFound(node.path("name").asText(""));
            case STRIPE -> new BrokerMessage.Stripe();
            case TURNS -> new BrokerMessage.Turns();
            case TURN_BELL -> new BrokerMessage.TurnBell();
            case DESCRIPTORS -> new BrokerMessage.DescriptorSocket();
            case WATCHING -> new BrokerMessage.Watching();
            case DOORBELL -> new BrokerMessage.Doorbell();
            case KEEP -> new BrokerMessage.Keep(number(node, "maxBytes"), number(node, "aheadBytes"));
            case KEEP_FOR -> new BrokerMessage.KeepFor(number(node, "maxBytes"));
            case KEEPER -> new BrokerMessage.Keeper(node.path("out").asBoolean());
            case SWAP_OUT -> new BrokerMessage.SwapOut(number(node, "bytes"));
            case SWAP_IN -> new BrokerMessage.SwapIn(number(node, "bytes"));
            case SWAP_FREEZE -> new BrokerMessage.SwapFreeze(node.path("frozen").asBoolean());
            case CHECKPOINT -> new BrokerMessage.Checkpoint(small(node, "pid"), number(node, "bytes"));
            case RESTORE -> new BrokerMessage.Restore(small(node, "pid"));
            case MOVER -> new BrokerMessage.Mover();
            case MOVE_SIDE -> new BrokerMessage.MoveSide(small(node, "pair"), node.path("source").asBoolean());
            case MOVE_OUT -> new BrokerMessage.MoveOut(node.path("address").asText(""));
            case MOVE_STREAM -> new BrokerMessage.MoveStream();
            case MOVE_IN -> new BrokerMessage.MoveIn();
            case MOVE_LINK -> new BrokerMessage.MoveLink();
            case MOVE_END -> new BrokerMessage.MoveEnd(node.path("moved").asBoolean());
            case END -> new BrokerMessage.End(node.path("reason").asText("ended by the broker"));
        };
    }

    private static List<String> texts(JsonNode node, String field) {
        List<String> texts = new ArrayList<>();
        node.path(field).forEach(text -> texts.add(text.asText("")));
        return texts;
    }

    private static List<Long> numbers(JsonNode node, String field) {
        List<Long> numbers = new ArrayList<>();
        node.path(field).forEach(number -> numbers.add(Math.max(0, number.asLong(0))));
        return numbers;
    }

    private static SharedRegion.Place place(JsonNode node) throws IOException {
        String carrier = node.path("carrier").asText("tcp");
        return switch (carrier) {
            case "tcp" -> null;
            // The guest chooses mapAddress, so any number is accepted here.
            case "shm" -> new SharedRegion.Place(number(node, "regionBytes"), small(node, "slotCount"),
                small(node, "slot"), small(node, "kind"), node.path("mapAddress").asLong(0));
            default -> throw new IOException("control message: carrier must be tcp or shm: carrier=" + carrier);
        };
    }

    private static int small(JsonNode node, String field) throws IOException {
        long value = number(node, field);
        if (value > Integer.MAX_VALUE) {
            throw new IOException("control message: " + field + " must be a small number: " + field + "=" + value);
        }
        return (int) value;
    }

    private static long number(JsonNode node, String field) throws IOException {
        JsonNode value = node.path(field);
        if (!value.canConvertToLong() || !value.isIntegralNumber() || value.asLong() < 0) {
            throw new IOException("control message: " + field + " must be a whole number: " + field + "=" + value);
        }
        return value.asLong();
    }

    /**
     * Writes a message of the worker.
     *
     * @param message the message.
     * @return its JSON.
     */
    public byte[] encode(WorkerMessage message) {
        ObjectNode node = message(message.type().wireName());
        node.setAll((ObjectNode) mapper.valueToTree(message));
        return bytes(node);
    }

    /** Writes an assignment as the broker does, for a worker that rehearses a session. */
    public byte[] encode(BrokerMessage.Assign assign) {
        ObjectNode node = message(BrokerMessageType.ASSIGN.wireName()).put("sessionId", assign.sessionId())
            .put("vgpu", assign.vgpu()).put("memoryBytes", assign.memoryBytes()).put("peer", assign.peer())
            .put("program", assign.program()).put("carrier", assign.place() == null ? "tcp" : "shm");
        putTexts(node, "images", assign.images());
        SharedRegion.Place place = assign.place();
        if (place != null) {
            node.put("regionBytes", place.regionBytes()).put("slotCount", place.slotCount()).put("slot", place.slot())
                .put("kind", place.kind()).put("mapAddress", place.mapAddress());
        }
        return bytes(node);
    }

    /** Writes a ledger's message as the broker does, for a worker that rehearses a session. */
    public byte[] encode(BrokerMessage.Ledger ledger) {
        ObjectNode node = message(BrokerMessageType.LEDGER.wireName()).put("slots", ledger.slots())
            .put("slot", ledger.slot());
        putTexts(node, "gpus", ledger.gpus());
        ArrayNode contextBytes = node.putArray("contextBytes");
        for (long bytes : ledger.contextBytes()) {
            contextBytes.add(bytes);
        }
        return bytes(node);
    }

    /** Writes a message without fields as the broker does, for a worker that rehearses a session. */
    public byte[] encode(BrokerMessageType type) {
        return bytes(message(type.wireName()));
    }

    private ObjectNode message(String name) {
        return mapper.createObjectNode().put("type", name);
    }

    private static void putTexts(ObjectNode node, String field, List<String> texts) {
        ArrayNode array = node.putArray(field);
        for (String text : texts) {
            array.add(text);
        }
    }

    private byte[] bytes(ObjectNode message) {
        try {
            return mapper.writeValueAsBytes(message);
        } catch (JacksonException e) {
            throw new IllegalStateException("a control message is plain data: " + message, e);
        }
    }
}
