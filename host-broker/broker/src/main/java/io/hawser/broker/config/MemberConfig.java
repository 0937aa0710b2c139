package io.hawser.broker.config;

import java.util.Optional;

/** The broker as a member of a pool: brokers whose {@code hawser.database.url} names one PostgreSQL database. */
public interface MemberConfig {
    /** The broker's name, its own in the pool. Range: 1 to 63 characters. Default: the machine's host name. */
    Optional<String> name();

    /**
     * Host name or address of this broker for guests that another broker of the pool sends here, without a port. With
     * TLS the certificate must be valid for it. Default: {@code hawser.listen.host}, or the host name where that is
     * all addresses.
     */
    Optional<String> address();
}
