package io.hawser.broker;

import io.hawser.cuda.generated.Description;

/** The description of the API that this broker's workers were made from. */
public final class ApiDescription {
    /**
     * Its hash; guest libraries made from another one would mean other calls by the same opcodes, so they are refused.
     */
    public static final long HASH = Description.HASH;

    private ApiDescription() {
    }
}
