package io.hawser.ctl;

import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;

/** Failures in the words of their user. */
final class Problems {
    private Problems() {
    }

    /** Of a file or a connection, in a few words. */
    static String of(Throwable failure) {
        if (failure instanceof NoSuchFileException) {
            return "there is no such file";
        } else if (failure instanceof AccessDeniedException) {
            return "permission denied";
        }
        String message = failure.getMessage();
        return message == null || message.isBlank() ? failure.getClass().getSimpleName() : message;
    }
}
