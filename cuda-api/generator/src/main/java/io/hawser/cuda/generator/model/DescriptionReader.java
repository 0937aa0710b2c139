package io.hawser.cuda.generator.model;

import com.fasterxml.jackson.databind.JsonNode;
import io.hawser.cuda.generator.model.ApiFunction.Gate;
import io.hawser.cuda.generator.model.ApiFunction.Move;
import io.hawser.cuda.generator.model.ApiFunction.Reply;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.yaml.GroupYaml;
import io.hawser.cuda.generator.yaml.GroupYaml.FunctionYaml;
import io.hawser.cuda.generator.yaml.LibraryYaml;
import io.hawser.cuda.generator.yaml.TypesYaml;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Reads the description's files and builds their model. */
public final class DescriptionReader {
    private final Source source;

    /** Creates a reader. */
    public DescriptionReader(Source source) {
        this.source = source;
    }

    /**
     * Reads all files and checks them, except for the lock.
     *
     * @throws IOException if a file is missing or malformed.
     * @throws DescriptionException if the description breaks a rule.
     */
    public Description read() throws IOException {
        List<Library> libraries = new ArrayList<>();
        for (JsonNode name : source.read("libraries.yaml", JsonNode.class).get("libraries")) {
            libraries.add(library(name.asText(), libraries));
        }
        Description description = new Description(libraries);
        DescriptionRules.check(description);
        return description;
    }

    private Library library(String folder, List<Library> earlier) throws IOException {
        LibraryYaml yaml = source.read(folder + "/library.yaml", LibraryYaml.class);
        List<TypesYaml> files = new ArrayList<>();
        for (String name : yaml.types()) {
            files.add(source.read(folder + "/" + name + ".yaml", TypesYaml.class));
        }
        Library uses = yaml.uses() == null ? null : new Description(earlier).library(yaml.uses());
        TypeTable types = new TypeTable(uses == null ? null : uses.types(), files);
        List<Group> groups = new ArrayList<>();
        for (String name : yaml.groups()) {
            GroupYaml group = source.read(folder + "/" + name + ".yaml", GroupYaml.class);
            List<ApiFunction> functions = new ArrayList<>();
            for (Forms.Expanded function : new Forms(yaml.forms()).expand(group.functions())) {
                functions.add(function(types, yaml.number(), group.local(), yaml.move(), function.yaml(),
                    function.family()));
            }
            groups.add(new Group(group.group(), functions));
        }
        Map<String, Integer> unsupported = new TreeMap<>();
        Set<String> headerless = new TreeSet<>();
        List<String> refused = new ArrayList<>();
        if (yaml.unsupported() != null) {
            for (JsonNode group : source.read(folder + "/" + yaml.unsupported() + ".yaml", JsonNode.class)
                .get("groups")) {
                group.path("exports").properties().forEach(e -> unsupported.put(e.getKey(), version(e.getKey(),
                    e.getValue().isNull() ? null : e.getValue().asText())));
                group.path("headerless").forEach(name -> {
                    unsupported.put(name.asText(), 0);
                    headerless.add(name.asText());
                });
                group.path("runtime").forEach(name -> refused.add(name.asText()));
            }
        }
        return new Library(yaml.library(), yaml.number(), yaml.soname(), yaml.javaName(),
            yaml.javaPackage() == null ? "io.hawser.cuda.generated" : yaml.javaPackage(), uses,
            yaml.versions() == null || yaml.versions(), yaml.result(), yaml.errors(), yaml.guestHeader(), types,
            groups, unsupported, headerless, refused, foreignClasses(folder, yaml.foreign(), groups),
            yaml.foreignObjects());
    }

    private List<ForeignClass> foreignClasses(String folder, String file, List<Group> groups) throws IOException {
        if (file == null) {
            return List.of();
        }
        Map<String, ApiFunction> unlisted = new HashMap<>();
        groups.forEach(group -> group.only(ApiFunction::exported).forEach(f -> unlisted.put(f.symbol(), f)));
        List<ForeignClass> classes = new ArrayList<>();
        for (Map.Entry<String, JsonNode> entry : source.read(folder + "/" + file + ".yaml", JsonNode.class)
            .properties()) {
            List<ApiFunction> functions = new ArrayList<>();
            for (JsonNode symbol : entry.getValue()) {
                ApiFunction function = unlisted.remove(symbol.asText());
                if (function == null) {
                    throw new DescriptionException(symbol.asText() + ": a foreign class lists exported functions of its"
                        + " library, each once: class=" + entry.getKey());
                }
                functions.add(function);
            }
            classes.add(new ForeignClass(entry.getKey(), functions));
        }
        return classes;
    }

    private static ApiFunction function(TypeTable types, int library, String local, String libraryMove,
        FunctionYaml yaml,
        Family family) {
        boolean travels = yaml.opcode() != null;
        List<Param> params = yaml.params() == null ? List.of()
            : yaml.params().stream().map(p -> new ParamReader(types, yaml.symbol(), p).read(travels)).toList();
        Reply reply = yaml.reply() == null ? null : Reply.valueOf(yaml.reply().toUpperCase(Locale.ROOT));
        String guest = reason(yaml, "guest", yaml.guest());
        return new ApiFunction(yaml.symbol(), family, travels ? library << 16 | yaml.opcode() : null,
            version(yaml.symbol(), yaml.since()), yaml.returns(), reply, yaml.credited(), yaml.memo(),
            yaml.gate() == null ? null : Gate.valueOf(yaml.gate().toUpperCase(Locale.ROOT)),
            travels ? move(yaml, params, libraryMove) : null,
            guest == null && reply == Reply.LOCAL ? local : guest,
            reason(yaml, "worker", yaml.worker()), travels && (yaml.backend() == null || yaml.backend()),
            travels && (yaml.context() == null || yaml.context()), yaml.ptsz(), yaml.ptds(), yaml.sameAs(),
            yaml.with() == null ? Map.of() : yaml.with(), yaml.wire() == null ? List.of() : yaml.wire(), params,
            Wire.of(params.stream().filter(p -> p.shape() != Shape.LOCAL && p.inRequest()).toList()),
            Wire.of(params.stream().filter(Param::inReply).toList()));
    }

    private static Move move(FunctionYaml yaml, List<Param> params, String libraryMove) {
        boolean creates = params.stream().anyMatch(param -> param.shape() == Shape.NEW);
        boolean ends = params.stream().anyMatch(param -> param.shape() == Shape.DROP);
        String implied = creates ? "make" : ends ? "none" : libraryMove == null ? "pins" : libraryMove;
        return Move.valueOf((yaml.move() == null ? implied : yaml.move()).toUpperCase(Locale.ROOT));
    }

    private static String reason(FunctionYaml function, String side, JsonNode node) {
        if (node == null || node.isTextual() && node.asText().equals("generated")) {
            return null;
        }
        if (!node.isObject() || node.size() != 1 || !node.path("manual").isTextual()) {
            throw new DescriptionException(function.symbol() + ": " + side
                + " must be generated or { manual: \"reason\" }: " + side + "=" + node);
        }
        return node.get("manual").asText();
    }

    /** Converts 11.2 to 11020. */
    private static int version(String symbol, String since) {
        if (since == null || since.equals("~")) {
            return 0;
        }
        String[] parts = since.split("\\.");
        if (parts.length != 2) {
            throw new DescriptionException(symbol + ": a version must read major.minor: since=" + since);
        }
        return Integer.parseInt(parts[0]) * 1000 + Integer.parseInt(parts[1]) * 10;
    }
}
