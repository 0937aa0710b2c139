package io.hawser.broker.web;

import io.hawser.broker.config.BrokerConfig;
import io.hawser.broker.model.StartException;
import java.time.Duration;

/** Checks the limits of {@code hawser.http.*}. The broker checks them before it starts anything. */
public final class HttpLimits {
    /** Keeps four times this number, the attempts on one name, within an int. */
    private static final int MOST_FAILED_LOGINS = 1_000_000;
    /** Keeps the time within 2^63 nanoseconds. */
    private static final Duration LONGEST = Duration.ofDays(36_500);
    private static final Duration SHORTEST = Duration.ofMillis(1);
    /** The timer of a request counts milliseconds in an int. */
    private static final Duration LONGEST_REQUEST = Duration.ofMillis(Integer.MAX_VALUE);

    private HttpLimits() {
    }

    /**
     * Checks all limits.
     *
     * @throws StartException when the broker cannot work with a limit. The message names the setting, its bounds and
     *     its value.
     */
    public static void check(BrokerConfig.Http http) {
        check("max-connections", http.maxConnections(), Integer.MAX_VALUE);
        check("max-per-peer", http.maxPerPeer(), Integer.MAX_VALUE);
        check("max-head-fields", http.maxHeadFields(), Integer.MAX_VALUE);
        check("max-head-size", http.maxHeadSize().asLongValue(), Integer.MAX_VALUE);
        check("max-pipelined", http.maxPipelined(), Integer.MAX_VALUE);
        check("max-failed-logins", http.maxFailedLogins(), MOST_FAILED_LOGINS);
        check("request-timeout", http.requestTimeout(), SHORTEST, LONGEST_REQUEST);
        check("known-peer-time", http.knownPeerTime(), Duration.ZERO, LONGEST);
        check("login-idle", http.loginIdle(), SHORTEST, LONGEST);
        check("login-life", http.loginLife(), SHORTEST, LONGEST);
        if (http.reservedConnections() < 0 || http.reservedConnections() >= http.maxConnections()) {
            throw new StartException("hawser.http.reserved-connections must be at least 0 and below "
                + "hawser.http.max-connections: reserved=" + http.reservedConnections() + " max="
                + http.maxConnections());
        }
    }

    private static void check(String setting, long value, long most) {
        if (value < 1 || value > most) {
            throw new StartException("hawser.http." + setting + " must be between 1 and " + most + ": value=" + value);
        }
    }

    private static void check(String setting, Duration value, Duration least, Duration most) {
        if (value.compareTo(least) < 0 || value.compareTo(most) > 0) {
            throw new StartException("hawser.http." + setting + " must be between " + least + " and " + most
                + ": value=" + value);
        }
    }
}
