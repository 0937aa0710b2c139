package io.hawser.broker.access;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The least role that an operation of the REST interface needs. A test compares it with {@code x-role} of openapi.yml.
 * An operation without this annotation needs {@link Role#ADMIN}.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Needs {
    /** The role. */
    Role value();
}
