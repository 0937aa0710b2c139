package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.model.ApiFunction.Gate;
import io.hawser.cuda.generator.model.ApiFunction.Move;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.Param.Shape;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Rules for a description beyond its syntax. */
final class DescriptionRules {
    /** Names that generated code uses itself. */
    private static final Set<String> RESERVED = Set.of("call", "driver", "in", "cuResult", "manual", "reply", "writer");

    private static final Set<String> BUFFER_SIZES = Set.of("add", "multiply", "box", "compute");

    private final Map<String, ApiFunction> functions = new HashMap<>();

    private DescriptionRules() {
    }

    static void check(Description description) {
        DescriptionRules rules = new DescriptionRules();
        Map<Integer, String> kinds = new HashMap<>();
        description.kinds().forEach(kind -> {
            String other = kinds.put(kind.number(), kind.name());
            if (other != null) {
                throw bad(kind.name(), "a kind's number must be used once", "other=" + other);
            }
        });
        for (Library library : description.libraries()) {
            library.functions().forEach(rules::add);
            library.functions().forEach(function -> rules.checkFunction(library, function));
            rules.checkWire(library);
            library.methods().forEach(DescriptionRules::checkFamily);
            library.unsupported().keySet().forEach(name -> {
                if (rules.functions.containsKey(name)) {
                    throw bad(name, "an export is either described or unsupported", "");
                }
            });
        }
    }

    private void add(ApiFunction function) {
        if (functions.put(function.symbol(), function) != null) {
            throw bad(function.symbol(), "a function must be described once", "");
        }
    }

    private void checkFunction(Library library, ApiFunction function) {
        String symbol = function.symbol();
        if (function.sameAs() != null) {
            checkSameAs(function);
            return;
        }
        if (function.reply() == null) {
            throw bad(symbol, "reply must be sync, async, probe, data or local", "");
        }
        if (function.travels() == (function.reply() == Reply.LOCAL)) {
            throw bad(symbol, "a function has an opcode unless it is local", "reply=" + function.reply());
        }
        if (function.travels() && (function.opcode() & 0xFFFF) == 0) {
            throw bad(symbol, "an opcode's number must not be 0", "");
        }
        if (function.reply() == Reply.LOCAL && function.guestReason() == null) {
            throw bad(symbol, "a local function is manual in the guest", "");
        }
        if (library.versioned() && function.exported() && function.since() == 0) {
            throw bad(symbol, "an exported function must have since", "");
        }
        if (function.travels() && function.returns() != null) {
            throw bad(symbol, "a function that travels returns the library's result type", "");
        }
        boolean hasResultsOnly = function.params().stream().filter(Param::inReply)
            .allMatch(function.results()::contains);
        if (function.reply() != Reply.SYNC && function.hasOutputs()
            && !(function.reply() == Reply.PROBE && hasResultsOnly)) {
            throw bad(symbol, "only a synchronous function has outputs", "reply=" + function.reply());
        }
        if (function.memo() && (function.reply() != Reply.SYNC || function.credited() || !function.hasOutputs()
            || !function.request().buffers().isEmpty() || !function.answer().buffers().isEmpty()
            || function.params().stream().anyMatch(p -> p.shape() == Shape.INOUT || p.shape() == Shape.NEW
                || p.shape() == Shape.DROP))) {
            throw bad(symbol, "memo is for synchronous questions without work and buffers", "");
        }
        if (!function.backend() && function.travels() && function.workerReason() == null) {
            throw bad(symbol, "a function without a backend method is manual in the worker", "");
        }
        if (function.params().stream().filter(p -> p.shape() == Shape.NEW).count() > 1) {
            throw bad(symbol, "a function creates at most one handle", "");
        }
        if (function.gate() == Gate.WAITS && function.reply() != Reply.SYNC && function.created() != null) {
            throw bad(symbol, "a deferred function creates a handle only if the guest waits for it", "");
        }
        if (function.travels() && (function.move() == Move.MAKE) != (function.created() != null)
            && function.move() != Move.PINS) {
            throw bad(symbol, "a function that creates a handle makes it or pins the session", "move="
                + function.move());
        }
        if (function.gate() != null && !function.travels()) {
            throw bad(symbol, "gate is for functions that travel", "");
        }
        // The stream of a credited function of another library may be part of the state of its handle.
        if (function.travels() && function.gate() != null && function.gate() != Gate.WAITS && function.issuesWork()
            && function.stream() == null) {
            throw bad(symbol, "a function that puts work into a stream has a parameter of type CUstream", "");
        }
        if (function.travels()) {
            function.params().forEach(param -> checkParam(function, param));
            checkBulk(function);
        }
    }

    /** Checks that functions with one backend method have the same parameters, apart from their types. */
    private static void checkFamily(String method, List<ApiFunction> functions) {
        List<String> names = functions.getFirst().params().stream().map(Param::name).toList();
        for (ApiFunction function : functions) {
            boolean hasForm = function.family() != null && function.family().form() != null;
            boolean firstHasForm = functions.getFirst().family() != null
                && functions.getFirst().family().form() != null;
            if (hasForm != firstHasForm || !names.equals(function.params().stream().map(Param::name).toList())
                || function.manual() != functions.getFirst().manual()) {
                throw bad(function.symbol(), "functions of one family have the same parameters", "family=" + method);
            }
        }
    }

    /** Checks that {@code wire} leads to records, and that it names each function that exists only on the wire. */
    private void checkWire(Library library) {
        Set<String> named = new HashSet<>();
        for (ApiFunction function : library.functions()) {
            if (!function.exported() && !function.wire().isEmpty()) {
                throw bad(function.symbol(), "wire is for exported functions", "wire=" + function.wire());
            }
            for (String name : function.wire()) {
                ApiFunction carrier = functions.get(name);
                if (carrier == null || !carrier.travels() && carrier.wire().isEmpty()) {
                    throw bad(function.symbol(), "wire must name functions that have records", "wire=" + name);
                }
                named.add(name);
            }
        }
        for (ApiFunction function : library.travelling()) {
            if (!function.exported() && !named.contains(function.symbol())) {
                throw bad(function.symbol(), "the wire of an exported function must name it", "");
            }
        }
    }

    private void checkSameAs(ApiFunction function) {
        ApiFunction target = functions.get(function.sameAs());
        if (target == null || target.sameAs() != null) {
            throw bad(function.symbol(), "sameAs must name a described function", "sameAs=" + function.sameAs());
        }
        for (Param wanted : target.params()) {
            boolean given = function.params().stream().anyMatch(p -> p.name().equals(wanted.name()));
            if (!given && !function.with().containsKey(wanted.name()) && !wanted.type().equals("CUstream")) {
                throw bad(function.symbol(), "sameAs needs a value for each parameter of its target",
                    "parameter=" + wanted.name());
            }
        }
    }

    private static void checkParam(ApiFunction function, Param param) {
        String owner = function.symbol() + "." + param.name();
        if (RESERVED.contains(param.name())) {
            throw bad(owner, "generated code needs this name", "reserved=" + RESERVED);
        }
        for (SizeExpression size : new SizeExpression[] {param.bytes(), param.device(),
            param.scalar() == null ? null : param.scalar().bytes()}) {
            for (String name : size == null ? List.<String>of() : size.references()) {
                boolean isMemory = size == param.device() && function.isDescriptor(name);
                if (function.number(name) == null && !isMemory
                    && !(size.operations().contains("sum") && function.isArray(name))) {
                    throw bad(owner, "a size must use numbers of the call only", "name=" + name);
                }
            }
        }
        if (param.bytes() != null && param.bytes().operations().stream().anyMatch(o -> !BUFFER_SIZES.contains(o))) {
            throw bad(owner, "the size of a buffer has only", "operations=" + BUFFER_SIZES);
        }
        if (param.isRecord() && !function.manual()) {
            throw bad(owner, "a record is for functions that are manual in the worker", "type=" + param.type());
        }
        if (param.variable() && (param.shape() != Shape.OUT_BYTES || !function.manual())) {
            throw bad(owner, "variable is for output buffers of functions that are manual in the worker", "");
        }
        if (param.nullable() && (param.shape() == Shape.STRUCT || param.shape() == Shape.NUMBER)
            && param.device() == null) {
            throw bad(owner, "nullable is for buffers, texts, handles, addresses and outputs", "shape="
                + param.shape());
        }
        if (param.device() != null && (param.shape() != Shape.NUMBER || param.value().size() != 8)) {
            throw bad(owner, "device is for addresses", "shape=" + param.shape());
        }
    }

    private static void checkBulk(ApiFunction function) {
        List<Wire.Slot> buffers = function.request().buffers();
        for (int i = 0; i < buffers.size(); i++) {
            if (buffers.get(i).param().bulk() && i != buffers.size() - 1) {
                throw bad(function.symbol(), "only the last buffer is bulk", "parameter="
                    + buffers.get(i).param().name());
            }
        }
    }

    private static DescriptionException bad(String owner, String rule, String values) {
        return new DescriptionException(owner + ": " + rule + (values.isEmpty() ? "" : ": " + values));
    }
}
