package io.hawser.ctl.command;

import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code hawserctl completion}. */
@Command(name = "completion", description = "Prints a completion script for a shell: "
    + "source <(hawserctl completion bash).")
public final class CompletionCommand implements Runnable {
    /** The supported shells. */
    enum Shell { bash, zsh }

    @Spec
    private CommandSpec spec;
    @Parameters(paramLabel = "SHELL", description = "bash or zsh.")
    private Shell shell;

    @Override
    public void run() {
        String script = AutoComplete.bash("hawserctl", spec.root().commandLine());
        if (shell == Shell.zsh) {
            // zsh runs the script in its bash mode.
            script = "#compdef hawserctl\nautoload -U +X compinit bashcompinit\nwhence compdef >/dev/null || compinit\n"
                + "bashcompinit\n" + script;
        }
        spec.commandLine().getOut().print(script);
        spec.commandLine().getOut().flush();
    }
}
