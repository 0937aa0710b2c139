package io.hawser.ctl.command;

import io.hawser.client.Units;
import java.time.Instant;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * The expiry of a vGPU or token.
 *
 * @param time as the REST interface has it; empty for never.
 */
record Expiry(String time) {
    private static final String NEVER = "never";

    /** Parses an option's expiry. */
    static final class Converter implements ITypeConverter<Expiry> {
        @Override
        public Expiry convert(String text) {
            try {
                return new Expiry(text.equals(NEVER) ? "" : Units.instant(text, Instant.now()).toString());
            } catch (IllegalArgumentException e) {
                throw new TypeConversionException(e.getMessage());
            }
        }
    }
}
