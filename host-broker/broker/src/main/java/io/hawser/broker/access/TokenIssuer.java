package io.hawser.broker.access;

import java.util.concurrent.CompletionStage;

/** Checks bearer tokens that someone else has made. */
public interface TokenIssuer {
    /** For brokers that trust none. */
    TokenIssuer NONE = token -> null;

    /**
     * Whose a token is.
     *
     * @return null when no issuer is trusted; else a stage that completes with the answer and does not fail.
     */
    CompletionStage<Answer> identify(String token);
}
