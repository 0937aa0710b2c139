package io.hawser.broker.rest;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.Repository;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Makes the page of the REST interface from its contract. */
class RestReferenceTest {
    private static final String CONTRACT = "host-broker/broker/src/main/openapi/openapi.yml";
    private static final List<String> METHODS = List.of("get", "post", "put", "patch", "delete");
    private static final List<String> LIMITS = List.of("minimum", "maximum", "minLength", "maxLength", "minItems",
        "maxItems", "pattern", "format");

    private final JsonNode api;

    RestReferenceTest() throws IOException {
        api = new YAMLMapper().readTree(Repository.file(CONTRACT).toFile());
    }

    private static Iterable<Map.Entry<String, JsonNode>> fields(JsonNode node) {
        return node.properties();
    }

    private JsonNode resolve(JsonNode node) {
        return node.has("$ref") ? api.at(node.get("$ref").asText().substring(1)) : node;
    }

    private static String schemaLink(String reference) {
        String name = reference.substring(reference.lastIndexOf('/') + 1);
        return "[" + name + "](#" + name.toLowerCase(Locale.ROOT) + ")";
    }

    private static String type(JsonNode schema) {
        if (schema.has("$ref")) {
            return schemaLink(schema.get("$ref").asText());
        }
        for (String combination : List.of("oneOf", "anyOf", "allOf")) {
            if (schema.has(combination)) {
                List<String> types = new ArrayList<>();
                schema.get(combination).forEach(s -> types.add(type(s)));
                return String.join(combination.equals("allOf") ? " and " : " or ", types);
            }
        }
        if (schema.has("enum")) {
            List<String> values = new ArrayList<>();
            schema.get("enum").forEach(v -> values.add("`" + v.asText() + "`"));
            return String.join(", ", values);
        }
        if (schema.path("type").isArray()) {
            List<String> types = new ArrayList<>();
            schema.get("type").forEach(t -> types.add(t.asText()));
            return String.join(" or ", types) + limits(schema);
        }
        return switch (schema.path("type").asText()) {
            case "array" -> "array of " + type(schema.path("items")) + limits(schema);
            case "object" -> schema.path("additionalProperties").isObject()
                ? "object of " + type(schema.get("additionalProperties")) : "object";
            case "" -> "any";
            default -> schema.get("type").asText() + limits(schema);
        };
    }

    private static String limits(JsonNode schema) {
        StringBuilder limits = new StringBuilder();
        for (String limit : LIMITS) {
            if (schema.has(limit)) {
                limits.append(limits.isEmpty() ? " (" : ", ").append(limit).append(" `")
                    .append(schema.get(limit).asText()).append('`');
            }
        }
        if (schema.has("default")) {
            limits.append(limits.isEmpty() ? " (" : ", ").append("default `").append(schema.get("default").asText())
                .append('`');
        }
        return limits.append(limits.isEmpty() ? "" : ")").toString();
    }

    private static String content(JsonNode message) {
        List<String> types = new ArrayList<>();
        fields(message.path("content")).forEach(e -> types.add(type(e.getValue().path("schema"))
            + (e.getKey().equals("application/json") ? "" : " (`" + e.getKey() + "`)")));
        return String.join(", ", types);
    }

    private static String sentence(String text) {
        String stripped = text.strip();
        return stripped.isEmpty() || ".:".indexOf(stripped.charAt(stripped.length() - 1)) >= 0 ? stripped
            : stripped + ".";
    }

    private void operation(Markdown page, String method, String path, JsonNode common, JsonNode operation) {
        String role = operation.path("x-role").asText();
        assertTrue(!role.isEmpty(), "an operation must name its role (x-role): " + method + " " + path);
        assertTrue(operation.has("summary"), "an operation must have a summary: " + method + " " + path);
        page.heading(3, "`" + method.toUpperCase(Locale.ROOT) + " " + path + "`")
            .prose(sentence(operation.get("summary").asText())
                + " " + operation.path("description").asText())
            .item("Role: " + role);
        List<JsonNode> parameters = new ArrayList<>();
        common.forEach(parameters::add);
        operation.path("parameters").forEach(parameters::add);
        parameters.stream().map(this::resolve).forEach(p -> page.item("Parameter `" + p.get("name").asText() + "` ("
            + p.get("in").asText() + (p.path("required").asBoolean() ? ", required" : "") + "): "
            + type(p.path("schema")) + (p.has("description") ? "; " + p.get("description").asText() : "")));
        if (operation.has("requestBody")) {
            page.item("Body: " + content(resolve(operation.get("requestBody"))));
        }
        List<String> errors = new ArrayList<>();
        for (Map.Entry<String, JsonNode> answer : fields(operation.path("responses"))) {
            if (answer.getValue().path("$ref").asText().endsWith("/Problem")) {
                errors.add(answer.getKey());
                continue;
            }
            JsonNode response = resolve(answer.getValue());
            String body = content(response);
            page.item("Answer " + answer.getKey() + ": " + response.path("description").asText()
                + (body.isEmpty() ? "" : "; " + body));
        }
        if (!errors.isEmpty()) {
            page.item("Errors: " + String.join(", ", errors) + ", with a [Problem](#problem)");
        }
    }

    private void schema(Markdown page, String name, JsonNode schema) {
        page.heading(3, name);
        if (schema.has("description")) {
            page.prose(sentence(schema.get("description").asText()));
        }
        if (!schema.has("properties")) {
            page.prose("Type: " + type(schema));
            return;
        }
        List<String> required = new ArrayList<>();
        schema.path("required").forEach(r -> required.add(r.asText()));
        page.lines("\n").tableHead("field", "type", "meaning");
        for (Map.Entry<String, JsonNode> property : fields(schema.get("properties"))) {
            page.tableRow("`" + property.getKey() + "`" + (required.contains(property.getKey()) ? "" : " (optional)"),
                type(property.getValue()), property.getValue().path("description").asText());
        }
    }

    private String page() {
        Markdown page = new Markdown("`openapi.yml`", "REST interface of the broker")
            .prose(api.at("/info/description").asText() + "\n\nA running broker serves the contract itself at "
                + "`/q/openapi`.");
        page.heading(2, "Operations");
        for (Map.Entry<String, JsonNode> path : fields(api.get("paths"))) {
            for (String method : METHODS) {
                if (path.getValue().has(method)) {
                    operation(page, method, path.getKey(), path.getValue().path("parameters"),
                        path.getValue().get(method));
                }
            }
        }
        page.heading(2, "Ways to log in");
        for (Map.Entry<String, JsonNode> scheme : fields(api.at("/components/securitySchemes"))) {
            JsonNode kind = scheme.getValue();
            page.item("`" + scheme.getKey() + "`: " + kind.path("type").asText() + ", "
                + (kind.has("scheme") ? kind.get("scheme") : kind.path("name")).asText()
                + (kind.has("description") ? "; " + kind.get("description").asText() : ""));
        }
        page.heading(2, "Objects");
        Iterator<Map.Entry<String, JsonNode>> schemas = api.at("/components/schemas").properties().iterator();
        schemas.forEachRemaining(e -> schema(page, e.getKey(), e.getValue()));
        return page.text();
    }

    @Test
    void shouldEqualTheCommittedPage() {
        new Page("appliance/docs/reference/rest-api.md").check(page());
    }
}
