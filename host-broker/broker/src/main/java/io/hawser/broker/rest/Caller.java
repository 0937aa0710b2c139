package io.hawser.broker.rest;

import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Identity;
import jakarta.enterprise.context.RequestScoped;

/** The sender of the current request. */
@RequestScoped
public class Caller {
    private Answer.Known known;
    private String claimed = "";

    /** The sender's identity; null for operations without authentication. */
    public Identity identity() {
        return known == null ? null : known.identity();
    }

    /** Whether the identity is still valid, for answers that last for hours. Counts as use of a login. */
    public boolean isStillValid() {
        return known != null && known.holds().getAsBoolean();
    }

    /** The proven or claimed name; empty when the request has none. */
    String name() {
        return known == null ? claimed : known.identity().name();
    }

    void set(Answer answer) {
        switch (answer) {
            case Answer.Known found -> known = found;
            case Answer.Refused refused -> claimed = refused.name();
        }
    }
}
