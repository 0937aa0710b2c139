package io.hawser.broker.rest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLMapper;
import io.hawser.broker.access.Anyone;
import io.hawser.broker.access.Needs;
import io.hawser.broker.audit.AuditEntry;
import io.hawser.broker.events.Event;
import io.hawser.broker.history.HistoryInfo;
import io.hawser.broker.model.SwapInfo;
import io.hawser.broker.stream.Change;
import io.hawser.broker.stream.Picture;
import io.hawser.broker.stream.StreamApi;
import io.hawser.broker.view.BrokerInfo;
import io.hawser.broker.view.DrainInfo;
import io.hawser.broker.view.GpuInfo;
import io.hawser.broker.view.MoveInfo;
import io.hawser.broker.view.PeerInfo;
import io.hawser.broker.view.RebalanceInfo;
import io.hawser.broker.view.RegionInfo;
import io.hawser.broker.view.SessionInfo;
import io.hawser.broker.view.TokenInfo;
import io.hawser.broker.view.VgpuInfo;
import io.hawser.broker.view.VgpuStatistics;
import jakarta.ws.rs.HttpMethod;
import jakarta.ws.rs.Path;
import java.io.IOException;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Compares the code with its contract, openapi.yml. */
class ContractTest {
    /** The types of the contract for values, also for the primitive forms. */
    private static final Map<Class<?>, String> TYPES = Map.of(String.class, "string", Instant.class, "string",
        Integer.class, "integer/int32", Long.class, "integer/int64", Boolean.class, "boolean", List.class, "array",
        Double.class, "number/double", Map.class, "object");
    /** The records of all schemas of the contract. */
    private static final List<Class<?>> RECORDS = List.of(BrokerInfo.class, BrokerInfo.Pool.class,
        BrokerInfo.Library.class, GpuInfo.class, PeerInfo.class,
        SessionInfo.class, SessionInfo.Statistics.class, RegionInfo.class, RegionRequest.class, Problem.class, Me.class,
        LoginRequest.class, VgpuInfo.class, VgpuInfo.Owner.class, SwapInfo.class, VgpuStatistics.class,
        Event.class, Picture.class, Change.class, HistoryInfo.class, VgpuRequest.class, VgpuChange.class,
        MoveInfo.class, MoveRequest.class, DrainInfo.class, DrainInfo.Stayed.class,
        RebalanceRequest.class, RebalanceInfo.class, RebalanceInfo.RebalanceStep.class,
        TokenInfo.class, TokenRequest.class, NewToken.class,
        AuditEntry.class);
    /** The interfaces of all operations of the contract. */
    private static final List<Class<?>> APIS = List.of(BrokerApi.class, LoginApi.class, StreamApi.class, VgpuApi.class,
        AuditApi.class, MoveApi.class);
    /** Fields that an answer omits when they have no value. */
    private static final Set<String> LEFT_OUT = Set.of("Change.broker");
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
        forEachOperation((operation, method) -> coded.put(operation, method.getName()));
        assertEquals(written, coded);
    }

    @Test
    void shouldAskForTheRoleOfTheContract() {
        Map<String, String> written = new TreeMap<>();
        contract.get("paths").properties().forEach(path -> path.getValue().properties().forEach(operation -> {
            if (!operation.getKey().equals("parameters")) {
                JsonNode role = operation.getValue().get("x-role");
                written.put(operation.getKey() + " " + path.getKey(), role == null ? "not said" : role.asText());
            }
        }));
        Map<String, String> coded = new TreeMap<>();
        forEachOperation((operation, method) -> coded.put(operation, method.isAnnotationPresent(Anyone.class) ? "none"
            : AccessFilter.annotation(method, Needs.class).map(needs -> needs.value().label()).orElse("not coded")));
        assertEquals(written, coded);
    }

    private static void forEachOperation(BiConsumer<String, Method> action) {
        for (Class<?> api : APIS) {
            String root = api.getAnnotation(Path.class).value();
            for (Method method : api.getMethods()) {
                String verb = Arrays.stream(method.getAnnotations())
                    .map(a -> a.annotationType().getAnnotation(HttpMethod.class)).filter(Objects::nonNull)
                    .map(HttpMethod::value).findFirst().orElse("?").toLowerCase(Locale.ROOT);
                action.accept(verb + " " + root + method.getAnnotation(Path.class).value(), method);
            }
        }
    }

    @Test
    void shouldAnswerWithTheFieldsOfTheContract() {
        Map<String, Class<?>> records = RECORDS.stream().collect(Collectors.toMap(
            record -> record.getSimpleName()
                .replaceFirst("^(Gpu|Peer|Session|Region|Vgpu|Token|History|Swap|Move|Drain|Rebalance)Info$",
                    "$1"),
            record -> record));
        assertEquals(new TreeSet<>(records.keySet()), names(contract.at("/components/schemas")));
        records.forEach((name, record) -> {
            JsonNode schema = contract.at("/components/schemas/" + name);
            Map<String, String> coded = Arrays.stream(record.getRecordComponents())
                .collect(Collectors.toMap(RecordComponent::getName, c -> TYPES.getOrDefault(
                    MethodType.methodType(c.getType()).wrap().returnType(), "object")));
            Map<String, String> written = new TreeMap<>();
            schema.get("properties").properties().forEach(p -> written.put(p.getKey(), type(p.getValue())));
            assertEquals(written, new TreeMap<>(coded), name);
            List<String> required = new ArrayList<>();
            schema.path("required").forEach(field -> required.add(field.asText()));
            if (name.endsWith("Request") || name.equals("VgpuChange")) {
                assertTrue(written.keySet().containsAll(required), name);
            } else {
                Set<String> always = written.keySet().stream().filter(field -> !LEFT_OUT.contains(name + "." + field))
                    .collect(Collectors.toCollection(TreeSet::new));
                assertEquals(always, new TreeSet<>(required), name + ": the contract must require each field");
            }
        });
    }

    private static Set<String> names(JsonNode object) {
        return object.properties().stream().map(Map.Entry::getKey).collect(Collectors.toCollection(TreeSet::new));
    }

    private static String type(JsonNode property) {
        if (property.has("$ref") || property.has("anyOf")) { // of an object and "null"
            return "object";
        }
        JsonNode kind = property.get("type");
        String type = kind.isArray() ? kind.get(0).asText() : kind.asText(); // the second type is "null"
        return type.equals("integer") || type.equals("number") ? type + "/" + property.get("format").asText() : type;
    }
}
