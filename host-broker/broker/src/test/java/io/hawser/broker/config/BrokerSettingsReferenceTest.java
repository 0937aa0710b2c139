package io.hawser.broker.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.Repository;
import io.hawser.reference.SourceComments;
import io.hawser.reference.UsageText;
import io.quarkus.runtime.configuration.MemorySize;
import io.smallrye.config.ConfigMappingInterface.Property;
import io.smallrye.config.ConfigMappings;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Makes the page of the broker's settings from SmallRye Config's mapping and the settings' doc comments. */
class BrokerSettingsReferenceTest {
    private static final String FOLDER = "host-broker/broker/src/main/java/io/hawser/broker/config/";
    private static final String ROOT = BrokerConfig.class.getSimpleName();

    private static final String MAIN = "host-broker/broker/src/main/";
    private static final String LAUNCHER = MAIN + "sh/hawser-broker";
    private static final Pattern COPY = Pattern.compile("\\$\\{(hawser\\.[a-z.-]+):([^}]*)}"
        + "|value\\(context, \"(hawser\\.[a-z.-]+)\", \"([^\"]*)\"\\)");
    private static final Pattern HELP_ENTRY = Pattern.compile("  ([a-z][a-z.-]+) +\\S.*?(?:\\(([^()]*)\\))?");

    /** A sentence such as {@code Range: 1 to 64.} or {@code Default: none.} of a doc comment. */
    private static Pattern field(String name) {
        return Pattern.compile("\\b" + name + ": (.*?)\\.(?=\\s|$)");
    }

    private static final Pattern RANGE = field("Range");
    private static final Pattern DEFAULT = field("Default");
    private static final Pattern LINK = Pattern.compile("(?:([\\w.]+)?#)?(\\w+)\\(\\)");

    /** The settings' names by method, as in {@code BrokerConfig.Http#port}. */
    private final Map<String, String> names = new LinkedHashMap<>();
    private final Map<String, Property> settings = new LinkedHashMap<>();
    private final SourceComments comments;

    BrokerSettingsReferenceTest() {
        ConfigMappings.getProperties(ConfigMappings.ConfigClass.configClass(BrokerConfig.class)).forEach((path, p) -> {
            if (!p.isGroup() && !p.isMap()) {
                names.put(key(p.getMethod()), path.replace("[*]", "").replace("*", "NAME"));
                settings.put(key(p.getMethod()), p);
            }
        });
        comments = SourceComments.read(Stream.of(BrokerConfig.class, PoolConfig.class, LibrariesConfig.class,
            ComputeCacheConfig.class, SwapConfig.class, MoveConfig.class, RdmaConfig.class, MemberConfig.class,
            VgpuConfig.class)
            .map(source -> Repository.file(FOLDER + source.getSimpleName() + ".java")).toList(), this::link);
    }

    private static String key(Method method) {
        return method.getDeclaringClass().getCanonicalName().substring(BrokerConfig.class.getPackageName().length() + 1)
            + "#" + method.getName();
    }

    private String link(String owner, String target) {
        Matcher matcher = LINK.matcher(target);
        assertTrue(matcher.matches(), "a link must name a setting's method: " + target);
        String type = matcher.group(1) == null ? owner
            : matcher.group(1).startsWith(ROOT) ? matcher.group(1) : ROOT + "." + matcher.group(1);
        String setting = names.get(type + "#" + matcher.group(2));
        assertTrue(setting != null, "a link must name a setting's method: " + owner + " " + target);
        return "[`" + setting + "`](#" + setting.toLowerCase(Locale.ROOT).replace(".", "") + ")";
    }

    private static String format(Type type) {
        if (type instanceof ParameterizedType generic) {
            String element = format(generic.getActualTypeArguments()[0]);
            return generic.getRawType() == List.class ? "list with commas, each a " + element : element;
        }
        return switch (type) {
            case Class<?> c when c == int.class || c == Integer.class || c == long.class -> "integer";
            case Class<?> c when c == double.class -> "number";
            case Class<?> c when c == boolean.class -> "`true` or `false`";
            case Class<?> c when c == String.class || c.isEnum() -> "text";
            case Class<?> c when c == Path.class -> "path";
            case Class<?> c when c == Duration.class -> "duration";
            case Class<?> c when c == MemorySize.class -> "size";
            default -> throw new AssertionError("the page explains the values of each type: " + type);
        };
    }

    private static Optional<String> find(Pattern pattern, String text) {
        Matcher matcher = pattern.matcher(text);
        return matcher.find() ? Optional.of(matcher.group(1)) : Optional.empty();
    }

    private void addSection(Markdown page, String key) {
        Property setting = settings.get(key);
        String comment = comments.of(key).replaceAll("\\s+", " ");
        String value = format(setting.getMethod().getGenericReturnType());
        Optional<String> range = find(RANGE, comment);
        Optional<String> described = find(DEFAULT, comment);
        assertTrue(range.isPresent() || !List.of("integer", "number").contains(value),
            "the comment of a number must have a sentence \"Range:\": " + key);
        boolean hasDefault = setting.hasDefaultValue();
        assertEquals(!hasDefault, described.isPresent(),
            "a setting has either @WithDefault or a sentence \"Default:\": " + key);
        String standard = hasDefault ? "`" + setting.getDefaultValue() + "`" : described.orElseThrow();
        page.heading(3, "`" + names.get(key) + "`")
            .prose(RANGE.matcher(DEFAULT.matcher(comment).replaceAll("")).replaceAll("").replaceAll("\\s+", " "))
            .item("Value: " + value + range.map(r -> "; " + r).orElse("")).item("Default: " + standard);
    }

    private String page() {
        Markdown page = new Markdown(
            "`BrokerConfig` and the other interfaces of its package (doc comments and defaults)",
            "Settings of the broker")
            .prose("""
                Give a setting as `-Dhawser.listen.port=7654` on the command line of `hawser-broker`, as
                `HAWSER_LISTEN_PORT=7654` in its environment, or as a line of `config/application.properties` in the
                folder where it starts. A variable's name is the setting's in capitals, with `_` for each other
                character. The installed service reads `/etc/hawser/broker.conf`, which holds such variables. Settings
                that contain a NAME in small letters need the form with `-D`.

                The broker reads the settings once, at start: each change needs a restart, except where the entry
                differs. An unknown setting of `hawser` stops the start.

                A **duration** is a number with a unit (`500ms`, `30s`, `10m`, `12h`) or a plain number of seconds.
                A **size** is a number of bytes, or a number with `K`, `M`, `G` or `T` (powers of 1024).
                """);
        List<String> owners = new ArrayList<>();
        for (String name : comments.names()) {
            if (settings.containsKey(name)) {
                String owner = name.substring(0, name.indexOf('#'));
                if (!owners.contains(owner)) {
                    owners.add(owner);
                    String prefix = names.get(name).replaceFirst("\\.[^.]*$", "");
                    page.heading(2, owner.equals(ROOT) ? "The broker" : "`" + prefix + "`");
                    if (!owner.equals(ROOT)) {
                        page.prose(comments.of(owner));
                    }
                }
                addSection(page, name);
            }
        }
        return page.text();
    }

    @Test
    void shouldDescribeEachSetting() {
        assertTrue(comments.names().containsAll(settings.keySet()), () -> {
            List<String> missing = new ArrayList<>(settings.keySet());
            missing.removeAll(comments.names());
            return "settings without a doc comment: " + missing;
        });
    }

    /** {@code hawser-broker --help} has a short list written by hand. Its names and constant defaults must be right. */
    @Test
    void shouldHaveTheNamesAndDefaultsOfTheHelpText() throws IOException {
        Map<String, Property> byName = new LinkedHashMap<>();
        names.forEach((key, name) -> byName.put(name, settings.get(key)));
        String prefix = "";
        int compared = 0;
        for (String line : Files.readString(Repository.file(LAUNCHER)).split("\n")) {
            Matcher entry = HELP_ENTRY.matcher(line);
            if (line.matches("[A-Za-z].*")) {
                prefix = line.startsWith("vGPU NAME") ? "hawser.vgpus.NAME."
                    : line.startsWith("Shared memory NAME") ? "hawser.regions.NAME." : "";
            } else if (entry.matches() && (entry.group(1).startsWith("hawser.") || !prefix.isEmpty())) {
                String name = (entry.group(1).startsWith("hawser.") ? "" : prefix) + entry.group(1);
                Property setting = byName.get(name);
                assertTrue(setting != null, "the help text names a setting that does not exist: " + name);
                if (setting.hasDefaultValue() && entry.group(2) != null && !name.equals("hawser.worker.dir")) {
                    String standard = setting.getDefaultValue().replace("${user.home}", "~");
                    assertEquals(standard, entry.group(2).replaceFirst("(?<=\\w):.*", ""),
                        "the default in the help text of " + name);
                    compared++;
                }
            }
        }
        assertTrue(compared > 20, "number of compared defaults: " + compared);
    }

    /** Quarkus reads some settings before the mapping exists, so other files repeat the defaults of these settings. */
    @Test
    void shouldHaveTheDefaultsWhereQuarkusReadsSettings() throws IOException {
        Map<String, Property> byName = new LinkedHashMap<>();
        names.forEach((key, name) -> byName.put(name, settings.get(key)));
        String copies = Files.readString(Repository.file(MAIN + "resources/application.properties"))
            + Files.readString(Repository.file(MAIN + "java/io/hawser/broker/config/DerivedSettings.java"));
        Matcher copy = COPY.matcher(copies);
        int compared = 0;
        while (copy.find()) {
            String name = copy.group(1) == null ? copy.group(3) : copy.group(1);
            String standard = copy.group(1) == null ? copy.group(4) : copy.group(2);
            Property setting = byName.get(name);
            assertTrue(setting != null, "a setting that Quarkus reads must exist: " + name);
            assertEquals(setting.hasDefaultValue() ? setting.getDefaultValue() : "", standard,
                "the default of " + name);
            compared++;
        }
        assertTrue(compared > 5, "number of compared defaults: " + compared);
    }

    @Test
    void shouldEqualTheCommittedPageOfTheCommand() throws IOException, InterruptedException {
        Process help = new ProcessBuilder(Repository.file(LAUNCHER).toString(), "--help").redirectErrorStream(true)
            .start();
        String text = new String(help.getInputStream().readAllBytes());
        assertEquals(0, help.waitFor(), text);
        new Page("appliance/docs/reference/hawser-broker.md").check(new Markdown("`hawser-broker --help`",
            "hawser-broker").prose("[Settings of the broker](broker-settings.md) describes all settings.").code(text)
            .text());
        UsageText.checkManual(text, "appliance/distribution/share/man/man1/hawser-broker.1");
    }

    @Test
    void shouldEqualTheCommittedPage() {
        new Page("appliance/docs/reference/broker-settings.md").check(page());
    }
}
