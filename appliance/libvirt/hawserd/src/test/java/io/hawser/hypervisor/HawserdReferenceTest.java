package io.hawser.hypervisor;

import io.hawser.reference.Markdown;
import io.hawser.reference.Page;
import io.hawser.reference.UsageText;
import org.junit.jupiter.api.Test;

/** Makes the reference page of the command, and compares the manual page, with its usage text. */
class HawserdReferenceTest {
    @Test
    void shouldEqualTheCommittedPageOfTheCommand() {
        new Page("appliance/docs/reference/hawserd.md").check(new Markdown("`hawserd --help`", "hawserd")
            .code(Hawserd.usage()).text());
    }

    @Test
    void shouldHaveTheOptionsOfTheUsageTextInTheManualPage() {
        UsageText.checkManual(Hawserd.usage(), "appliance/distribution/share/man/man8/hawserd.8");
    }
}
