package io.hawser.ctl.command;

import io.hawser.client.ApiClient;
import io.hawser.client.ClientException;
import io.hawser.client.Endpoint;
import io.hawser.client.Failure;
import io.hawser.client.LoginFile;
import io.hawser.client.Settings;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/** {@code hawserctl login}. */
@Command(name = "login", description = "Logs in by name and password. The login lasts: the broker's cookie is stored "
    + "in ~/.config/hawser/login.json, the password is not stored.")
public final class LoginCommand extends ApiCommand {
    @Parameters(paramLabel = "NAME", arity = "0..1", description = "A user of the broker; or --user.")
    private String name;
    private String user;

    /** Without credentials: an earlier login or a token on this machine does not count. */
    @Override
    Endpoint endpoint(Settings settings) {
        return settings.anonymous();
    }

    @Override
    void prepare() {
        user = name == null ? root().user() : name;
        if (user == null) {
            throw new ParameterException(spec().commandLine(), "the name of a user is missing");
        }
    }

    @Override
    void run(ApiClient client) {
        Settings settings = root().settings();
        String password = settings.password(user, root().passwordFile());
        String cookie;
        try {
            cookie = client.login(Map.of("name", user, "password", password));
        } catch (ClientException e) {
            throw e.failure() == Failure.NOT_ALLOWED
                ? new ClientException(Failure.NOT_ALLOWED, "the broker does not accept " + user + " and this password")
                : e;
        }
        LoginFile.write(settings.loginFile(), client.endpoint().url().toString(), cookie);
        printDone("logged in: " + user + " at " + client.endpoint().url());
    }
}
