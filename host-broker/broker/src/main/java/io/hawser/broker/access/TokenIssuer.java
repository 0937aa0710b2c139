package io.hawser.broker.access;

import java.util.concurrent.CompletionStage;

/** Checks bearer tokens of an external issuer. */
public interface TokenIssuer {
    /** For brokers without a trusted issuer. */
    TokenIssuer NONE = token -> null;

    /**
     * Identifies the bearer of a token.
     *
     * @return null when no issuer is trusted; else a stage that completes with the answer and does not fail.
     */
    CompletionStage<Answer> identify(String token);
}
