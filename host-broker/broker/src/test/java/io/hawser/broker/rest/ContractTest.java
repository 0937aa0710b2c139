package io.hawser.broker.rest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The code against openapi.yml, which comes first. */
class ContractTest {
    private static final Map<Class<?>, String> TYPES = Map.of(String.class, "string", Instant.class, "string",
        int.class, "integer/int32", long.class, "integer/int64", Integer.class, "integer/int32", Long.class,
        "integer/int64", boolean.class, "boolean", List.class, "array",
        Double.class, "number/double");
    private static JsonNode contract;

    @BeforeAll
    static void read() throws IOException {
        contract = new YAMLMapper().readTree(java.nio.file.Path.of("src/main/openapi/openapi.yml").toFile());
    }

    @Test
    void shouldImplementEachOperationAndNoOther() {
        Map<String, String> written = new TreeMap<>();
        contract.get("paths").properties().forEach(path -> path.getValue().properties().forEach(operation -> {
            if (!operation.getKey().equals("parameters")) {
                written.put(operation.getKey() + " " + path.getKey(), operation.getValue().get("operationId").asText());
            }
        }));
        Map<String, String> coded = new TreeMap<>();
        String root = BrokerApi.class.getAnnotation(Path.class).value();
        for (Method method : BrokerApi.class.getMethods()) {
            String verb = method.isAnnotationPresent(GET.class) ? "get"
                : method.isAnnotationPresent(DELETE.class) ? "delete"
                : method.isAnnotationPresent(POST.class) ? "post" : "?";
            coded.put(verb + " " + root + method.getAnnotation(Path.class).value(), method.getName());
        }
        assertEquals(written, coded);
    }

    @Test
    void shouldAnswerWithTheFieldsOfTheContract() {
        Map<String, Class<?>> records = Map.of("BrokerInfo", BrokerInfo.class, "Pool", BrokerInfo.Pool.class, "Gpu",
            GpuInfo.class, "Session", SessionInfo.class, "Statistics", SessionInfo.Statistics.class, "Region",
            RegionInfo.class, "RegionRequest", RegionRequest.class, "Problem", Problem.class);
        assertEquals(new TreeSet<>(records.keySet()), names(contract.at("/components/schemas")));
        records.forEach((name, record) -> {
            JsonNode schema = contract.at("/components/schemas/" + name);
            Map<String, String> coded = Arrays.stream(record.getRecordComponents())
                .collect(Collectors.toMap(RecordComponent::getName, c -> TYPES.getOrDefault(c.getType(), "object")));
            Map<String, String> written = new TreeMap<>();
            schema.get("properties").properties().forEach(p -> written.put(p.getKey(), type(p.getValue())));
            assertEquals(written, new TreeMap<>(coded), name);
            List<String> required = new ArrayList<>();
            schema.get("required").forEach(field -> required.add(field.asText()));
            if (name.endsWith("Request")) {
                assertTrue(written.keySet().containsAll(required), name);
            } else {
                assertEquals(written.keySet(), new TreeSet<>(required), name + ": every field is always there");
            }
        });
    }

    private static Set<String> names(JsonNode object) {
        return object.properties().stream().map(Map.Entry::getKey).collect(Collectors.toCollection(TreeSet::new));
    }

    private static String type(JsonNode property) {
        if (property.has("$ref")) {
            return "object";
        }
        JsonNode kind = property.get("type");
        String type = kind.isArray() ? kind.get(0).asText() : kind.asText(); // the other is "null"
        return type.equals("integer") || type.equals("number") ? type + "/" + property.get("format").asText() : type;
    }
}
