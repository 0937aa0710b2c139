package io.hawser.broker.rest;

import io.hawser.broker.access.Answer;
import io.hawser.broker.access.Identity;
import jakarta.enterprise.context.RequestScoped;

/** Who sends the request that is being answered. */
@RequestScoped
public class Caller {
    private Answer.Known known;
    private String claimed = "";

    /** Who it is; null for operations that ask for nobody. */
    public Identity identity() {
        return known == null ? null : known.identity();
    }

    /** Whether that still holds, for answers that go on for hours. Counts as use of a login. */
    public boolean holds() {
        return known != null && known.holds().getAsBoolean();
    }

    /** The name that was shown or claimed; empty when there was none. */
    String name() {
        return known == null ? claimed : known.identity().name();
    }

    void is(Answer answer) {
        switch (answer) {
            case Answer.Known found -> known = found;
            case Answer.Refused refused -> claimed = refused.name();
        }
    }
}
