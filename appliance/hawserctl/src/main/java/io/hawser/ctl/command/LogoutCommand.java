package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.LoginFile;
import picocli.CommandLine.Command;

/** {@code hawserctl logout}. */
@Command(name = "logout", description = "Ends the login.")
public final class LogoutCommand extends ApiCommand {
    @Override
    void run(ApiClient client) {
        try {
            client.change("DELETE", "/api/v1/login", null);
        } finally {
            LoginFile.delete(root().settings().loginFile());
        }
        printDone("logged out");
    }
}
