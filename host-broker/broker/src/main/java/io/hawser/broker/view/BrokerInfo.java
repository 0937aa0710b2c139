package io.hawser.broker.view;

import java.time.Instant;
import java.util.List;

/** The broker itself; see openapi.yml. */
public record BrokerInfo(String version, int protocolVersion, String descriptionHash, Instant started,
    String guestEndpoint, String guestTlsEndpoint, String httpEndpoint, String backend, int maxSessions, String jail,
    String placement, double overcommit, String turns, String database, boolean tls, Pool pool,
    List<Library> libraries, String name, String poolProblem) {

    /** A math library that workers may open; see openapi.yml. Null is unknown. */
    public record Library(String soname, String path, String version) {}

    /** Its workers; see openapi.yml. */
    public record Pool(int size, int grown, int ready, int starting, int assigned, int failures, String lastFailure,
        int waiting) {}
}
