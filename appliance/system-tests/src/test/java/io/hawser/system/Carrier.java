package io.hawser.system;

import java.util.Map;

/** How a guest program reaches its worker. */
enum Carrier {
    /** The broker's port, with a token. */
    TCP("tcp"),
    /** The broker's region, a file in /dev/shm. */
    SHM("shm");

    private final String inStatistics;

    Carrier(String inStatistics) {
        this.inStatistics = inStatistics;
    }

    /** As statistics and REST name it. */
    String inStatistics() {
        return inStatistics;
    }

    /** The other one. */
    Carrier other() {
        return this == TCP ? SHM : TCP;
    }

    /** The variables with which a guest uses this carrier and no other. */
    Map<String, String> environment(BrokerProcess broker) {
        return switch (this) {
            case TCP -> Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE",
                broker.tokenFile().toString());
            case SHM -> Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION", broker.region().path().toString());
        };
    }
}
