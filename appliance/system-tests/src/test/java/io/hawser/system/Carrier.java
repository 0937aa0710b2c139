package io.hawser.system;

import java.util.Map;

/** The way of a guest program to its worker. */
enum Carrier {
    /** The broker's port, with a token. */
    TCP("tcp"),
    /** The broker's region, a file in /dev/shm. */
    SHM("shm");

    private final String inStatistics;

    Carrier(String inStatistics) {
        this.inStatistics = inStatistics;
    }

    /** The name in statistics and REST. */
    String inStatistics() {
        return inStatistics;
    }

    /** The other carrier. */
    Carrier other() {
        return this == TCP ? SHM : TCP;
    }

    /** The variables with which a guest uses only this carrier. */
    Map<String, String> environment(BrokerProcess broker) {
        return switch (this) {
            case TCP -> Map.of("HAWSER_CARRIER", "tcp", "HAWSER_BROKER", broker.guest(), "HAWSER_TOKEN_FILE",
                broker.tokenFile().toString());
            case SHM -> Map.of("HAWSER_CARRIER", "shm", "HAWSER_REGION", broker.region().path().toString());
        };
    }
}
