package io.hawser.ctl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.ctl.command.ExitCode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The command line without a broker. */
class CommandLineTest {
    private static final Path MANUAL = Path.of("../distribution/share/man/man1/hawserctl.1");

    @TempDir
    Path folder;

    /** The result of a command. */
    private record Ended(int exitCode, String out, String err) {}

    private static Ended run(String... args) {
        StringWriter out = new StringWriter();
        StringWriter err = new StringWriter();
        int exitCode = Hawserctl.commandLine().setOut(new PrintWriter(out, true)).setErr(new PrintWriter(err, true))
            .execute(args);
        return new Ended(exitCode, out.toString(), err.toString());
    }

    private static List<CommandSpec> commands(CommandSpec spec) {
        List<CommandSpec> all = new ArrayList<>(List.of(spec));
        spec.subcommands().values().forEach(sub -> all.addAll(commands(sub.getCommandSpec())));
        return all;
    }

    @Test
    void shouldRefuseWrongCommandLinesInOneLine() {
        for (String line : new String[] {"", "nothing", "vgpus create", "vgpus create a --memory 16X",
            "vgpus create a --mode half", "vgpus change a", "vgpus create a --owner me",
            "vgpus create a --carriers rdma", "tokens", "tokens create", "sessions end", "sessions show x",
            "regions create a", "regions create a --path x",
            "regions create a --path /x --doorbell-socket /y", "completion fish", "gpus --url ftp://a",
            "tokens create a --expires soon", "tokens create a --replace", "vgpus create a --expires soon",
            "vgpus create a --label k", "vgpus list --label k", "tokens list a --old-proofs", "login",
            "brokers remove", "brokers list x", "vgpus move a", "sessions move 1", "sessions move x --gpu 0",
            "gpus drain", "gpus undrain", "vgpus move --gpu 0", "vgpus change a --at b", "gpus --of",
            "cdi", "cdi a --new-region 1X", "cdi a --remove --region r",
            "vgpus change a --expected-owner none", "vgpus delete a --expected-owner me"}) {
            Ended ended = run(line.isEmpty() ? new String[0] : line.split(" "));
            assertEquals(ExitCode.USAGE, ended.exitCode(), line + ": " + ended.err());
            assertEquals(1, ended.err().lines().count(), line + ": " + ended.err());
            assertTrue(ended.err().startsWith("hawserctl: "), ended.err());
            assertEquals("", ended.out(), line);
        }
    }

    @Test
    void shouldReportThatNoBrokerAnswers() {
        Ended ended = run("gpus", "--url", "http://127.0.0.1:1");
        assertEquals(ExitCode.NOT_REACHABLE, ended.exitCode());
        assertEquals("hawserctl: no broker answers at http://127.0.0.1:1: the connection was refused",
            ended.err().strip());
        assertEquals(ExitCode.NOT_REACHABLE, run("gpus", "--url", "http://no.invalid:1").exitCode());
        assertTrue(run("gpus", "--url", "http://no.invalid:1").err().contains("there is no such host"));
    }

    @Test
    void shouldExplainEachCommand() {
        for (CommandSpec spec : commands(Hawserctl.commandLine().getCommandSpec())) {
            List<String> args = new ArrayList<>(List.of(spec.qualifiedName(" ").split(" ")));
            args.removeFirst();
            args.add("--help");
            Ended ended = run(args.toArray(String[]::new));
            assertEquals(0, ended.exitCode(), args.toString());
            assertTrue(ended.out().startsWith("Usage: " + spec.qualifiedName(" ")), ended.out());
            assertTrue(spec.usageMessage().description().length > 0, args + " is described");
            for (OptionSpec option : spec.options()) {
                assertTrue(option.description().length > 0, args + ": " + option.longestName() + " is described");
            }
        }
    }

    @Test
    void shouldHaveEachCommandAndOptionInTheManual() throws IOException {
        String manual = Files.readString(MANUAL).replace("\\-", "-").replaceAll("\\\\f[BIR]", "");
        for (CommandSpec spec : commands(Hawserctl.commandLine().getCommandSpec())) {
            String name = spec.qualifiedName(" ").replaceFirst("hawserctl ?", "");
            assertTrue(manual.contains(name), "the manual has no " + name);
            for (OptionSpec option : spec.options()) {
                String shown = option.negatable() ? "--[no-]" + option.longestName().substring(2)
                    : option.longestName();
                assertTrue(manual.contains(shown), "the manual has no " + shown);
            }
        }
        for (int code = 0; code <= ExitCode.CHANGED; code++) {
            assertTrue(manual.contains("\n.TP\n" + code + "\n"), "the manual has no exit code " + code);
        }
    }

    @Test
    void shouldCompleteInBash() throws Exception {
        Ended script = run("completion", "bash");
        assertEquals(0, script.exitCode());
        Path file = Files.writeString(folder.resolve("completion"), script.out());
        // compopt prints an error outside of an interactive completion.
        String asked = "exec 2>/dev/null; source " + file + "; COMP_WORDS=(hawserctl vgpus cr); COMP_CWORD=2; "
            + "COMP_LINE='hawserctl vgpus cr'; COMP_POINT=18; _complete_hawserctl; echo \"${COMPREPLY[@]}\"; "
            + "COMP_WORDS=(hawserctl vgpus create --mem); "
            + "COMP_CWORD=3; COMP_LINE='hawserctl vgpus create --mem'; COMP_POINT=28; _complete_hawserctl; "
            + "echo \"${COMPREPLY[@]}\"; COMP_WORDS=(hawserctl vgpus change a --sw); "
            + "COMP_CWORD=4; COMP_LINE='hawserctl vgpus change a --sw'; COMP_POINT=30; _complete_hawserctl; "
            + "echo \"${COMPREPLY[@]}\"";
        Process bash = new ProcessBuilder("bash", "-c", asked).redirectErrorStream(true).start();
        String answer = new String(bash.getInputStream().readAllBytes());
        assertEquals(0, bash.waitFor(), answer);
        assertEquals(List.of("create", "--memory", "--swappable"), answer.lines().map(String::strip).toList());
    }

    @Test
    void shouldSendOnlyGivenOptions() {
        // From picocli's arguments to the request's body: omitted properties must stay unchanged at the broker.
        CommandLine line = Hawserctl.commandLine();
        CommandLine.ParseResult parsed = line.parseArgs("vgpus", "change", "a", "--memory", "1.5G", "--carriers",
            "tcp,shm");
        List<String> given = parsed.subcommand().subcommand().matchedOptions().stream().map(OptionSpec::longestName)
            .sorted().toList();
        assertEquals(List.of("--carriers", "--memory"), given);
        assertEquals(3L << 29, parsed.subcommand().subcommand().<Long>matchedOptionValue("--memory", 0L));
    }
}
