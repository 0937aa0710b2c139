package io.hawser.worker.control;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.hawser.worker.channel.shm.SharedRegion;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

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
        return switch (node.path("type").asText("")) {
            case "assign" -> new BrokerMessage.Assign(number(node, "sessionId"), node.path("vgpu").asText(""),
                number(node, "memoryBytes"), node.path("peer").asText(""), node.path("program").asText(""),
                texts(node, "images"), place(node));
            case "ledger" -> new BrokerMessage.Ledger(small(node, "slots"), small(node, "slot"), texts(node, "gpus"),
                numbers(node, "contextBytes"));
            case "store" -> new BrokerMessage.Store(node.path("sha256").asText(""));
            case "image" -> new BrokerMessage.Image(node.path("sha256").asText(""), number(node, "bytes"));
            case "noimage" -> new BrokerMessage.NoImage(node.path("sha256").asText(""));
            case "shared" -> new BrokerMessage.Shared(node.path("name").asText(""), node.path("kept").asBoolean());
            case "unshared" -> new BrokerMessage.Unshared(node.path("name").asText(""));
            case "found" -> new BrokerMessage.Found(node.path("name").asText(""), node.path("handle").asText(""),
                number(node, "bytes"));
            case "notfound" -> new BrokerMessage.NotFound(node.path("name").asText(""));
            case "turns" -> new BrokerMessage.Turns();
            case "turnbell" -> new BrokerMessage.TurnBell();
            case "watching" -> new BrokerMessage.Watching();
            case "doorbell" -> new BrokerMessage.Doorbell();
            case "end" -> new BrokerMessage.End(node.path("reason").asText("ended by the broker"));
            case "" -> throw new IOException("control message must have a type");
            default -> null;
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
        ObjectNode node = mapper.createObjectNode();
        node.put("type", message.getClass().getSimpleName().toLowerCase(Locale.ROOT));
        node.setAll((ObjectNode) mapper.valueToTree(message));
        try {
            return mapper.writeValueAsBytes(node);
        } catch (JacksonException e) {
            throw new IllegalStateException("a control message is plain data: " + message, e);
        }
    }
}
