package io.hawser.reference;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Assertions;

/** The usage text of a command that has no model of its options, and its hand-written manual page. */
public final class UsageText {
    private static final Pattern OPTION = Pattern.compile("(?<![\\w-])--[a-z][a-z-]+");

    private UsageText() {
    }

    /** Fails unless usage text and manual page name the same options. */
    public static void checkManual(String usage, String manual) {
        try {
            String page = Files.readString(Repository.file(manual)).replace("\\-", "-").replaceAll("\\\\f[BIRP]", "");
            Assertions.assertEquals(options(usage), options(page), manual + " must have the options of the usage text");
        } catch (IOException e) {
            throw new UncheckedIOException("a manual page must be readable: " + manual, e);
        }
    }

    private static TreeSet<String> options(String text) {
        return OPTION.matcher(text).results().map(MatchResult::group).collect(Collectors.toCollection(TreeSet::new));
    }
}
