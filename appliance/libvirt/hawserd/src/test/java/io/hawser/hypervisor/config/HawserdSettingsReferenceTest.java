package io.hawser.hypervisor.config;

import io.hawser.reference.Manual;
import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.Sheet;
import io.hawser.reference.SourceComments;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Makes hawserd's reference page, manual page and example file from {@link HawserdSetting}. */
class HawserdSettingsReferenceTest {
    private static final String SOURCE = "HawserdSetting";
    private static final int COLUMNS = 118;
    private static final Pattern DEFAULT = Pattern.compile(" ?Default: ");
    private final SourceComments comments = SourceComments.read(
        Path.of("src/main/java/io/hawser/hypervisor/config/HawserdSetting.java"),
        (owner, target) -> "`" + HawserdSetting.valueOf(target.substring(1)).key() + "`");

    /** The meaning, with a sentence on the default. */
    private String meaning(HawserdSetting setting) {
        String comment = comments.of("HawserdSetting#" + setting.name()).replaceAll("\\s+", " ");
        if (setting.standard().isEmpty() != DEFAULT.matcher(comment).find()) {
            throw new AssertionError("a setting has either a constant default or a sentence \"Default:\": " + setting);
        }
        return setting.standard().isEmpty() ? comment : comment + " Default: `" + setting.standard() + "`.";
    }

    private void fill(Sheet sheet) {
        sheet.section("Description").prose("""
            hawserd reads `/etc/hawser/hawserd.conf` at its start: lines of `name = "value"`, and comments that begin
            with `#`. Each setting has a default that fits a broker on the same host. A change needs a restart of
            hawserd, which does not affect running domains.
            """);
        sheet.section("Settings");
        for (HawserdSetting setting : HawserdSetting.values()) {
            sheet.term("`" + setting.key() + "`", meaning(setting));
        }
    }

    private String example() {
        StringBuilder file = new StringBuilder(comment("Settings of hawserd: lines of name = \"value\"; see "
            + "hawserd.conf(5). Each line behind a # shows the default or an example. A change needs a restart of "
            + "hawserd, which does not affect running domains."));
        for (HawserdSetting setting : HawserdSetting.values()) {
            file.append('\n').append(comment(meaning(setting).replace("`", ""))).append('#').append(setting.key())
                .append(" = \"").append(setting.example()).append("\"\n");
        }
        return file.toString();
    }

    private static String comment(String text) {
        StringBuilder lines = new StringBuilder("#");
        int column = 1;
        for (String word : text.split(" ")) {
            if (column + 1 + word.length() > COLUMNS) {
                lines.append("\n#");
                column = 1;
            }
            lines.append(' ').append(word);
            column += 1 + word.length();
        }
        return lines.append('\n').toString();
    }

    @Test
    void shouldEqualTheCommittedPage() {
        Markdown page = new Markdown(SOURCE, "Settings of hawserd");
        fill(page);
        new Page("appliance/docs/reference/hawserd-settings.md").check(page.text());
    }

    @Test
    void shouldEqualTheCommittedManualPage() {
        Manual page = new Manual(SOURCE, "hawserd.conf", 5, "File Formats", "settings of hawserd");
        fill(page);
        page.section("See also").prose("`hawserd(8)`");
        new Page("appliance/distribution/share/man/man5/hawserd.conf.5").check(page.text());
    }

    @Test
    void shouldEqualTheCommittedExample() {
        new Page("appliance/libvirt/hawserd/src/main/conf/hawserd.conf").check(example());
    }
}
