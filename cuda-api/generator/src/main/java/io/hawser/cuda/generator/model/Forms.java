package io.hawser.cuda.generator.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.hawser.cuda.generator.yaml.GroupYaml.FunctionYaml;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Functions that a library has for several types of numbers: one description, repeated for each form and, with {@code
 * wide}, for 64-bit integers. Opcodes count up in that order.
 *
 * @param texts the library's forms: a letter and the texts that it stands for; null for none.
 */
record Forms(Map<String, Map<String, String>> texts) {
    private static final Map<String, String> WIDE = Map.of("int", "int64_t");

    List<FunctionYaml> expand(List<JsonNode> functions) throws IOException {
        List<FunctionYaml> all = new ArrayList<>();
        for (JsonNode node : functions) {
            FunctionYaml yaml = Source.convert(node, FunctionYaml.class);
            int step = 0;
            for (String form : yaml.forms() == null ? List.of("") : yaml.forms()) {
                JsonNode own = form.isEmpty() ? node : replace(node, form);
                all.add(numbered(own, step++));
                if (yaml.wide()) {
                    all.add(numbered(widened(own.deepCopy()), step++));
                }
            }
        }
        return all;
    }

    private static FunctionYaml numbered(JsonNode node, int step) throws IOException {
        ObjectNode own = node.deepCopy();
        if (own.has("opcode")) {
            own.put("opcode", own.get("opcode").asInt() + step);
        }
        return Source.convert(own, FunctionYaml.class);
    }

    private static ObjectNode widened(ObjectNode own) {
        own.put("symbol", own.get("symbol").asText() + "_64");
        for (JsonNode param : own.get("params")) {
            String type = param.get("type").asText();
            ((ObjectNode) param).put("type", WIDE.getOrDefault(type, type));
        }
        return own;
    }

    /** A copy in which the placeholders of all texts are replaced. */
    private JsonNode replace(JsonNode node, String form) {
        if (texts == null || !texts.containsKey(form)) {
            throw new DescriptionException("a form must be one of the library: form=" + form);
        }
        return switch (node) {
            case TextNode text -> {
                String result = text.asText().replace("<T>", form);
                for (Map.Entry<String, String> entry : texts.get(form).entrySet()) {
                    result = result.replace("<" + entry.getKey() + ">", entry.getValue());
                }
                yield TextNode.valueOf(result);
            }
            case ArrayNode array -> {
                ArrayNode copy = array.arrayNode();
                array.forEach(element -> copy.add(replace(element, form)));
                yield copy;
            }
            case ObjectNode object -> {
                ObjectNode copy = object.objectNode();
                object.properties().forEach(e -> copy.set(e.getKey(), replace(e.getValue(), form)));
                yield copy;
            }
            default -> node;
        };
    }
}
