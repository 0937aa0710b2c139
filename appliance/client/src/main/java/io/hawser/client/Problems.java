package io.hawser.client;

import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;

/** Short texts for failures. */
public final class Problems {
    private Problems() {
    }

    /** A short text for a failure of a file or a connection. */
    public static String of(Throwable failure) {
        if (failure instanceof NoSuchFileException) {
            return "there is no such file";
        } else if (failure instanceof AccessDeniedException) {
            return "permission denied";
        }
        String message = failure.getMessage();
        return message == null || message.isBlank() ? failure.getClass().getSimpleName() : message;
    }
}
