package io.hawser.reference;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import picocli.CommandLine;
import picocli.CommandLine.Model.ArgGroupSpec;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/** The parts of a page that describe a picocli command line. */
public final class CommandLines {
    private CommandLines() {
    }

    /** Adds each command without subcommands of its own, or that works without one, with its own options. */
    public static void commands(Sheet sheet, CommandSpec root) {
        for (CommandLine line : root.subcommands().values()) {
            CommandSpec spec = line.getCommandSpec();
            boolean isGroup = !spec.subcommands().isEmpty();
            boolean works = !isGroup || spec.usageMessage().synopsisSubcommandLabel().startsWith("[");
            if (works) {
                String name = spec.qualifiedName(" ");
                String synopsis = synopsis(spec);
                sheet.part("`" + name + "`").prose((synopsis.equals(name) ? "" : "`" + synopsis + "`\n\n")
                    + sentences(spec.usageMessage().description()));
                spec.positionalParameters().stream().filter(p -> p.description().length > 0)
                    .forEach(p -> sheet.term("`" + p.paramLabel() + "`", meaning(p)));
                options(sheet, own(spec));
            }
            commands(sheet, spec);
        }
    }

    /** Adds the options of the root, which all commands have. */
    public static void commonOptions(Sheet sheet, CommandSpec root) {
        options(sheet, root.options());
    }

    private static void options(Sheet sheet, List<OptionSpec> options) {
        for (OptionSpec option : options) {
            sheet.term(String.join(", ", List.of(option.names()).stream().map(name -> "`" + shown(option, name)
                + (name.startsWith("--") && hasValue(option) ? " " + option.paramLabel() : "") + "`").toList()),
                meaning(option));
        }
    }

    private static List<OptionSpec> own(CommandSpec spec) {
        return spec.options().stream().filter(option -> !option.inherited()).toList();
    }

    private static boolean hasValue(OptionSpec option) {
        return option.arity().max() > 0;
    }

    private static String meaning(ArgSpec argument) {
        return sentences(argument.description()).replace("${DEFAULT-VALUE}", String.valueOf(argument.defaultValue()));
    }

    private static String sentences(String[] lines) {
        return String.join(" ", lines).replaceAll("(--[a-z][a-z-]*)", "`$1`");
    }

    private static String synopsis(CommandSpec spec) {
        List<String> words = new ArrayList<>(List.of(spec.qualifiedName(" ")));
        for (PositionalParamSpec parameter : spec.positionalParameters()) {
            String label = parameter.paramLabel() + (parameter.arity().max() > 1 ? "..." : "");
            words.add(parameter.arity().min() == 0 ? "[" + label + "]" : label);
        }
        for (ArgGroupSpec group : spec.argGroups()) {
            words.add("(" + group.args().stream().map(a -> word((OptionSpec) a)).collect(Collectors.joining(" | "))
                + ")");
        }
        own(spec).stream().filter(option -> option.group() == null)
            .forEach(option -> words.add(option.required() ? word(option) : "[" + word(option) + "]"));
        return String.join(" ", words);
    }

    /** A name of an option; of a negatable option both names in one. */
    private static String shown(OptionSpec option, String name) {
        return option.negatable() ? name.replaceFirst("^--", "--[no-]") : name;
    }

    private static String word(OptionSpec option) {
        return shown(option, option.longestName()) + (hasValue(option) ? " " + option.paramLabel() : "");
    }
}
