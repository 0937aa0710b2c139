package io.hawser.cuda.generator.model;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.hawser.cuda.generator.yaml.GroupYaml.FunctionYaml;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Functions that a library has for several types of numbers: one description, repeated for each form and, with {@code
 * wide}, for 64-bit integers. Opcodes count up in that order.
 *
 * @param texts the library's forms: a letter and the texts that it stands for; null for none.
 */
record Forms(Map<String, Map<String, String>> texts) {
    private static final Map<String, String> WIDE = Map.of("int", "int64_t", "int *", "int64_t *", "const int *",
        "const int64_t *");

    private static final Map<String, String> NARROW = Map.of("i", "4");
    private static final Map<String, String> WIDER = Map.of("i", "8");

    /** A function of a description, and its family; null for a function of its own. */
    record Expanded(FunctionYaml yaml, Family family) {
    }

    List<Expanded> expand(List<JsonNode> functions) throws IOException {
        List<Expanded> all = new ArrayList<>();
        for (JsonNode node : functions) {
            FunctionYaml yaml = Source.convert(node, FunctionYaml.class);
            int step = 0;
            for (String form : yaml.forms() == null ? List.of("") : yaml.forms()) {
                JsonNode own = form.isEmpty() ? node : replace(node, texts(form));
                all.add(new Expanded(numbered(replace(own, NARROW), step++), family(yaml, form, false)));
                if (yaml.wide()) {
                    all.add(new Expanded(numbered(widened(replace(own, WIDER)), step++), family(yaml, form, true)));
                }
            }
        }
        return all;
    }

    private static Family family(FunctionYaml yaml, String form, boolean isWide) {
        return form.isEmpty() && !yaml.wide() ? null : new Family(yaml.symbol().replaceAll("<\\w+>", "T"),
            form.isEmpty() ? null : form, isWide, yaml.wide());
    }

    private static FunctionYaml numbered(JsonNode node, int step) throws IOException {
        ObjectNode own = node.deepCopy();
        if (own.has("opcode")) {
            own.put("opcode", own.get("opcode").asInt() + step);
        }
        return Source.convert(own, FunctionYaml.class);
    }

    private static JsonNode widened(JsonNode node) {
        ObjectNode own = (ObjectNode) node;
        own.put("symbol", own.get("symbol").asText() + "_64");
        for (JsonNode param : own.get("params")) {
            String type = param.get("type").asText();
            ((ObjectNode) param).put("type", WIDE.getOrDefault(type, type));
        }
        return own;
    }

    /** The texts of a form, with its letters. */
    private Map<String, String> texts(String form) {
        if (texts == null || !texts.containsKey(form)) {
            throw new DescriptionException("a form must be one of the library: form=" + form);
        }
        Map<String, String> all = new HashMap<>(texts.get(form));
        all.put("T", form);
        return all;
    }

    /** A copy in which the placeholders {@code <name>} of all texts are replaced. */
    private static JsonNode replace(JsonNode node, Map<String, String> texts) {
        return switch (node) {
            case TextNode text -> {
                String result = text.asText();
                for (Map.Entry<String, String> entry : texts.entrySet()) {
                    result = result.replace("<" + entry.getKey() + ">", entry.getValue());
                }
                yield TextNode.valueOf(result);
            }
            case ArrayNode array -> {
                ArrayNode copy = array.arrayNode();
                array.forEach(element -> copy.add(replace(element, texts)));
                yield copy;
            }
            case ObjectNode object -> {
                ObjectNode copy = object.objectNode();
                object.properties().forEach(e -> copy.set(e.getKey(), replace(e.getValue(), texts)));
                yield copy;
            }
            default -> node;
        };
    }
}
