package io.hawser.ctl;

import io.hawser.ctl.command.ExitCode;
import io.hawser.reference.CommandLines;
import io.hawser.reference.Manual;
import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.Repository;
import io.hawser.reference.Sheet;
import io.hawser.reference.SourceComments;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import picocli.CommandLine.Model.CommandSpec;

/** Makes the reference page and the manual page of hawserctl from its picocli model and from {@link ExitCode}. */
class HawserctlReferenceTest {
    private static final String SOURCE = "hawserctl's picocli model";
    private static final String PURPOSE = "administer a Hawser broker and the vGPUs of virtual machines";

    private static void fill(Sheet sheet) throws IllegalAccessException {
        CommandSpec root = Hawserctl.commandLine().getCommandSpec();
        sheet.section("Synopsis").prose("`hawserctl COMMAND [OPTION]...`");
        sheet.section("Description").prose("""
            hawserctl calls the broker's REST interface and prints aligned tables, or JSON with `--json`. On the
            broker's own machine no option is needed: the state folder holds the broker's address and the admin token.

            The commands `attach`, `detach`, `prepare` and `domains` call hawserd on this machine instead, at its
            socket.

            A size is like `16G`, `512M` or `4096`; its units are powers of 1024. Commands that delete or end an object
            ask for confirmation on a terminal; `--yes` suppresses the question. Without a terminal they do not ask.
            """);
        sheet.section("Commands");
        CommandLines.commands(sheet, root);
        sheet.section("Options of all commands");
        CommandLines.commonOptions(sheet, root);
        sheet.section("Exit status");
        Path source = Repository.file("").relativize(Path.of("src/main/java/io/hawser/ctl/command/ExitCode.java")
            .toAbsolutePath());
        SourceComments meanings = SourceComments.read(Repository.file(source.toString()), (owner, target) -> target);
        for (Field code : ExitCode.class.getDeclaredFields()) {
            if (Modifier.isPublic(code.getModifiers())) {
                sheet.term("`" + code.getInt(null) + "`", meanings.of("ExitCode#" + code.getName()));
            }
        }
        sheet.section("Environment").prose("""
            An option takes precedence over its variable, and the variable over the file `ctl.toml`.
            """);
        for (String option : new String[] {"url", "state-dir", "token-file", "user", "password-file", "ca-file"}) {
            sheet.term("`HAWSERCTL_" + option.toUpperCase(Locale.ROOT).replace('-', '_') + "`",
                "As `--" + option + "`.");
        }
        sheet.term("`HAWSERCTL_CONFIG`", "As `--config-file`.")
            .term("`HAWSERCTL_SOCKET`", "As `--socket`.")
            .term("`HAWSERCTL_TOKEN`", "The token itself.")
            .term("`HAWSERCTL_JAVA_OPTS`", "Flags for the Java that runs hawserctl, separated by spaces.");
        sheet.section("Files").term("`~/.config/hawser/ctl.toml`", """
            Lines of `name = "value"` with the names url, state-dir, token-file, user, password-file and ca-file.
            hawserctl sends the secrets of this file only to the url of this file.
            """).term("`~/.config/hawser/login.json`", "The cookie of a login, with mode 0600.");
        sheet.section("See also").prose("`hawser-broker(1)`, `hawserd(8)`");
    }

    @Test
    void shouldEqualTheCommittedPage() throws IllegalAccessException {
        Markdown page = new Markdown(SOURCE, "hawserctl").prose("hawserctl: " + PURPOSE + ".");
        fill(page);
        new Page("appliance/docs/reference/hawserctl.md").check(page.text());
    }

    @Test
    void shouldEqualTheCommittedManualPage() throws IllegalAccessException {
        Manual page = new Manual(SOURCE, "hawserctl", 1, "User Commands", PURPOSE);
        fill(page);
        new Page("appliance/distribution/share/man/man1/hawserctl.1").check(page.text());
    }
}
