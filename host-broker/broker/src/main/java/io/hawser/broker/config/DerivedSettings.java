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
        return derived;
    }

    private static String value(ConfigSourceContext context, String name, String otherwise) {
        ConfigValue value = context.getValue(name);
        return value == null || value.getValue() == null ? otherwise : value.getValue().strip();
    }
}
