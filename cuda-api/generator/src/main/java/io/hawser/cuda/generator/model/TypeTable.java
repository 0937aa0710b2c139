package io.hawser.cuda.generator.model;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generator.model.CType.Enumeration;
import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Handle;
import io.hawser.cuda.generator.model.CType.Number;
import io.hawser.cuda.generator.model.CType.Pointer;
import io.hawser.cuda.generator.model.CType.Scalar;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.yaml.TypesYaml;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The types of a library, by their names in C. */
public final class TypeTable {
    private static final Pattern ARRAY = Pattern.compile("(\\w+)\\[(\\d+)]");
    private static final Map<String, Number> NUMBERS = Map.ofEntries(
        Map.entry("char", Number.I8), Map.entry("signed char", Number.I8), Map.entry("unsigned char", Number.U8),
        Map.entry("short", Number.I16), Map.entry("unsigned short", Number.U16), Map.entry("int", Number.I32),
        Map.entry("unsigned int", Number.U32), Map.entry("unsigned", Number.U32), Map.entry("long", Number.I64),
        Map.entry("unsigned long", Number.U64), Map.entry("long long", Number.I64),
        Map.entry("unsigned long long", Number.U64), Map.entry("size_t", Number.U64),
        Map.entry("int8_t", Number.I8), Map.entry("uint8_t", Number.U8), Map.entry("int16_t", Number.I16),
        Map.entry("uint16_t", Number.U16), Map.entry("int32_t", Number.I32), Map.entry("uint32_t", Number.U32),
        Map.entry("int64_t", Number.I64), Map.entry("uint64_t", Number.U64), Map.entry("float", Number.F32),
        Map.entry("double", Number.F64));

    private final Map<String, CType> types = new LinkedHashMap<>();
    private final Map<String, HandleKind> kinds = new LinkedHashMap<>();
    private final Map<String, String> scalars = new LinkedHashMap<>();
    private final Map<String, String> aliases = new LinkedHashMap<>();
    private final Map<String, String> callbacks = new LinkedHashMap<>();
    private final List<String> opaque = new ArrayList<>();
    private final Map<String, String> macros = new LinkedHashMap<>();
    private final Map<String, String> resultTexts = new LinkedHashMap<>();

    private final TypeTable parent;

    /**
     * Builds the table; a file may use the types of earlier files.
     *
     * @param parent types of the library that this one uses; null for none.
     */
    public TypeTable(TypeTable parent, List<TypesYaml> files) {
        this.parent = parent;
        NUMBERS.forEach((name, number) -> types.put(name, new Scalar(name, number)));
        files.forEach(this::add);
    }

    private void add(TypesYaml file) {
        each(file.kinds()).forEach(k -> kinds.put(k.name(),
            new HandleKind(k.name(), k.number(), k.doc(), k.special())));
        each(file.handles()).forEach((name, h) -> put(new Handle(name, h.tag(), h.kind() == null ? null
            : kind(name, h.kind()))));
        each(file.scalars()).forEach((name, base) -> {
            put(new Scalar(name, ((Scalar) find(base)).number()));
            scalars.put(name, base);
        });
        if (file.results() != null) {
            Map<String, Long> values = new LinkedHashMap<>();
            file.results().values().forEach((name, result) -> {
                values.put(name, (long) result.value());
                resultTexts.put(name, result.text());
            });
            put(new Enumeration(file.results().type(), file.results().tag(), values));
        }
        each(file.callbacks()).forEach((name, text) -> {
            callbacks.put(name, text);
            put(new Pointer(name));
        });
        opaque.addAll(file.opaque() == null ? List.of() : file.opaque());
        macros.putAll(each(file.macros()));
        each(file.enums()).forEach((name, e) -> put(new Enumeration(name, e.tag(), e.values())));
        each(file.structs()).forEach((name, s) -> put(s.record()
            ? requireRecord(structure(name, s.tag(), false, true, s.fields()))
            : structure(name, s.tag(), s.union() != null, false, s.union() != null ? s.union() : s.fields())));
        aliases.putAll(each(file.aliases()));
    }

    private HandleKind kind(String type, String name) {
        HandleKind kind = kinds.get(name);
        if (kind == null && parent != null) {
            return parent.kind(type, name);
        }
        if (kind == null) {
            throw new DescriptionException(type + ": a handle's kind must be described: kind=" + name);
        }
        return kind;
    }

    private void put(CType type) {
        if (types.putIfAbsent(type.name(), type) != null) {
            throw new DescriptionException(type.name() + ": a type must be described once");
        }
    }

    private static Structure requireRecord(Structure type) {
        int bytes = type.fields().stream().mapToInt(Field::size).sum();
        boolean plain = type.fields().stream().allMatch(f -> f.elements() == 0 && (f.type() instanceof Scalar
            || f.type() instanceof Enumeration || f.type() instanceof Structure inner && inner.record()));
        if (!plain || bytes != type.size()) {
            throw new DescriptionException(type.name() + ": a record has numbers and records without gaps: fieldsBytes="
                + bytes + ", bytes=" + type.size());
        }
        return type;
    }

    private Structure structure(String name, String tag, boolean union, boolean record, List<JsonNode> nodes) {
        List<Field> fields = new ArrayList<>();
        int end = 0;
        int alignment = 1;
        for (JsonNode node : nodes) {
            // A struct or union without a name: an anonymous member of C11.
            String text = node.path("name").asText();
            Matcher array = ARRAY.matcher(text);
            boolean isArray = array.matches();
            CType type = fieldType(name, node);
            int elements = isArray ? Integer.parseInt(array.group(2)) : 0;
            int offset = union ? 0 : align(end, type.alignment());
            if (text.isEmpty() && (type.name() != null || !(type instanceof Structure))) {
                throw new DescriptionException(name + ": a field without a name is a struct or union: " + node);
            }
            Field field = new Field(isArray ? array.group(1) : text, type, elements, offset,
                node.path("identity").asBoolean(), node.path("address").asBoolean());
            fields.add(field);
            end = Math.max(end, offset + field.size());
            alignment = Math.max(alignment, type.alignment());
        }
        return new Structure(name, tag, union, record, fields, align(end, alignment), alignment);
    }

    private CType fieldType(String owner, JsonNode node) {
        for (String kind : List.of("struct", "union")) {
            if (node.has(kind)) {
                List<JsonNode> inner = new ArrayList<>();
                node.get(kind).forEach(inner::add);
                return structure(null, null, kind.equals("union"), false, inner);
            }
        }
        if (!node.has("type")) {
            throw new DescriptionException(owner + ": a field must have a type, struct or union: field=" + node);
        }
        return find(node.get("type").asText());
    }

    /**
     * Finds a type by its text in C.
     *
     * @throws DescriptionException if it is not described.
     */
    public CType find(String text) {
        String name = text.strip();
        if (name.endsWith("*")) {
            return new Pointer(name);
        }
        name = name.startsWith("const ") ? name.substring(6) : name;
        CType type = types.get(aliases.getOrDefault(name, name));
        if (type == null && parent != null) {
            return parent.find(text);
        }
        if (type == null) {
            throw new DescriptionException(text + ": a type must be described");
        }
        return type;
    }

    /** The type of a pointer's target; null for void. */
    public CType pointee(String text) {
        String base = text.strip().substring(0, text.strip().length() - 1).strip();
        base = base.startsWith("const ") ? base.substring(6) : base;
        return base.equals("void") ? null : find(base);
    }

    /** Every type with a name, in the order of the description. */
    public <T extends CType> List<T> all(Class<T> wanted) {
        return types.values().stream().filter(wanted::isInstance).map(wanted::cast).toList();
    }

    /** Kinds of handles that this library adds. */
    public List<HandleKind> kinds() {
        return List.copyOf(kinds.values());
    }

    /** Names of numbers: name to C type. */
    public Map<String, String> scalars() {
        return scalars;
    }

    /** Aliases: name to type. */
    public Map<String, String> aliases() {
        return aliases;
    }

    /** Function types: name to C type. */
    public Map<String, String> callbacks() {
        return callbacks;
    }

    /** Structures that only occur behind pointers. */
    public List<String> opaque() {
        return opaque;
    }

    /** Macros: name to text. */
    public Map<String, String> macros() {
        return macros;
    }

    /** Texts of results: enumerator to text. */
    public Map<String, String> resultTexts() {
        return resultTexts;
    }

    static int align(int at, int alignment) {
        return (at + alignment - 1) / alignment * alignment;
    }

    private static <K, V> Map<K, V> each(Map<K, V> map) {
        return map == null ? Map.of() : map;
    }

    private static <T> List<T> each(List<T> list) {
        return list == null ? List.of() : list;
    }
}
