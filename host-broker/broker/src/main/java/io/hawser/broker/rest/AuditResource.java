package io.hawser.broker.rest;

import io.hawser.broker.audit.AuditEntry;
import io.smallrye.common.annotation.Blocking;
import jakarta.inject.Inject;
import jakarta.ws.rs.BadRequestException;
import java.sql.SQLException;
import java.util.List;

/** Answers requests for the audit log. */
@Blocking
public class AuditResource implements AuditApi {
    private static final int DEFAULT_LIMIT = 100;
    private static final int MAX_LIMIT = 1000;

    @Inject
    Gate gate;

    @Override
    public List<AuditEntry> listAudit(Integer limit, Long before) {
        int count = limit == null ? DEFAULT_LIMIT : limit;
        if (count < 1 || count > MAX_LIMIT) {
            throw new BadRequestException("limit must be 1 to " + MAX_LIMIT + ": limit=" + count);
        }
        try {
            return gate.audit().newest(count, before == null ? Long.MAX_VALUE : before);
        } catch (SQLException e) {
            throw new IllegalStateException("cannot read the audit log", e);
        }
    }
}
