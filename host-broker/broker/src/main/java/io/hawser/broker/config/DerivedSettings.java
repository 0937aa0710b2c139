package io.hawser.broker.config;

import io.smallrye.config.ConfigSourceContext;
import io.smallrye.config.ConfigSourceFactory;
import io.smallrye.config.ConfigValue;
import io.smallrye.config.PropertiesConfigSource;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import org.eclipse.microprofile.config.spi.ConfigSource;

/** Settings of Quarkus that follow from settings of Hawser by more than their value. */
public final class DerivedSettings implements ConfigSourceFactory {
    /** Above application.properties (250), below what an operator sets. */
    private static final int ORDINAL = 260;

    @Override
    public Iterable<ConfigSource> getConfigSources(ConfigSourceContext context) {
        return List.of(new PropertiesConfigSource(derive(context), "hawser-derived", ORDINAL));
    }

    @Override
    public OptionalInt getPriority() {
        return OptionalInt.of(ORDINAL);
    }

    private static Map<String, String> derive(ConfigSourceContext context) {
        Map<String, String> derived = new HashMap<>();
        String issuer = value(context, "hawser.oidc.issuer", "");
        derived.put("quarkus.oidc.tenant-enabled", String.valueOf(!issuer.isEmpty()));
        if (!issuer.isEmpty()) {
            derived.put("quarkus.oidc.auth-server-url", issuer);
            derived.put("quarkus.oidc.token.audience", value(context, "hawser.oidc.audience", "hawser"));
            derived.put("quarkus.oidc.roles.role-claim-path", value(context, "hawser.oidc.roles-claim", "roles"));
        }
        tls(context, derived);
        return derived;
    }

    /** With a certificate the one port of the interface speaks TLS and nothing else. */
    private static void tls(ConfigSourceContext context, Map<String, String> derived) {
        String certificate = value(context, "hawser.tls.certificate", "");
        String key = value(context, "hawser.tls.key", "");
        if (certificate.isEmpty() || key.isEmpty()) {
            return; // one without the other is refused by Exposure, which can say why
        }
        derived.put("quarkus.http.tls-configuration-name", "hawser");
        derived.put("quarkus.tls.hawser.key-store.pem.hawser.cert", certificate);
        derived.put("quarkus.tls.hawser.key-store.pem.hawser.key", key);
        derived.put("quarkus.tls.hawser.protocols", "TLSv1.3,TLSv1.2");
        derived.put("quarkus.tls.hawser.alpn", "false"); // no HTTP/2, see application.properties
        derived.put("quarkus.tls.hawser.reload-period", value(context, "hawser.tls.reload-period", "30s"));
        derived.put("quarkus.http.ssl-port", value(context, "hawser.http.port", "7655"));
        derived.put("quarkus.http.test-ssl-port", "0");
        derived.put("quarkus.http.insecure-requests", "disabled");
    }

    private static String value(ConfigSourceContext context, String name, String otherwise) {
        ConfigValue value = context.getValue(name);
        return value == null || value.getValue() == null ? otherwise : value.getValue().strip();
    }
}
