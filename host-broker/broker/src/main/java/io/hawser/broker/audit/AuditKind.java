package io.hawser.broker.audit;

import java.util.List;
import java.util.Locale;

/** The kinds of entries of the audit log. Each kind has its own room, so that no kind displaces another. */
enum AuditKind {
    /** An act of an operator or admin that was done, or that failed and may have been done in part. */
    ACT(1),
    /** A login or logout. */
    LOGIN(4),
    /** A refused act of an identity, and every act of a viewer, since viewers change nothing. */
    REFUSED(4),
    /** A request without an identity. */
    STRANGER(4);

    private static final List<String> LOGINS = List.of("login", "logout"); // operations of openapi.yml
    private static final List<String> CHANGING_ROLES = List.of("operator", "admin");

    private final int part;

    AuditKind(int part) {
        this.part = part;
    }

    static AuditKind of(AuditEntry entry) {
        if (entry.role().isEmpty()) {
            return STRANGER;
        }
        if (LOGINS.contains(entry.action())) {
            return LOGIN;
        }
        return entry.outcome().equals("refused") || !CHANGING_ROLES.contains(entry.role()) ? REFUSED : ACT;
    }

    /** Number of entries of this kind that a log of so many acts keeps. */
    long room(long maxActs) {
        return Math.max(1, maxActs / part);
    }

    /** The value in the database. */
    String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
