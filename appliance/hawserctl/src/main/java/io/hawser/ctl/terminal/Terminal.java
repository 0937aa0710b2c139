package io.hawser.ctl.terminal;

import java.io.Console;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** The user's terminal: questions, and the size of the window. */
public final class Terminal {
    private static final int DEFAULT_ROWS = 24;
    private static final int DEFAULT_COLUMNS = 80;

    /** Rows and columns of a window. */
    public record Size(int rows, int columns) {}

    private Terminal() {
    }

    /** Whether both input and output are a terminal. */
    public static boolean isInteractive() {
        Console console = System.console();
        return console != null && console.isTerminal();
    }

    /** Asks a question; every answer but yes counts as no. */
    public static boolean confirm(PrintWriter out, String question) {
        out.print(question + " [y/N] ");
        out.flush();
        String answer = System.console().readLine();
        return answer != null && answer.strip().toLowerCase(Locale.ROOT).matches("y|yes");
    }

    /** Reads a password without echo; null if there is no terminal. */
    public static String password(String user) {
        if (!isInteractive()) {
            return null;
        }
        char[] password = System.console().readPassword("Password of %s: ", user);
        return password == null ? null : new String(password);
    }

    /** The present size of the window. */
    public static Size size() {
        try {
            Process stty = new ProcessBuilder("stty", "size").redirectInput(ProcessBuilder.Redirect.INHERIT)
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            String[] answer = new String(stty.getInputStream().readAllBytes()).strip().split(" ");
            if (stty.waitFor(1, TimeUnit.SECONDS) && stty.exitValue() == 0 && answer.length == 2) {
                Size size = new Size(Integer.parseInt(answer[0]), Integer.parseInt(answer[1]));
                return size.rows > 0 && size.columns > 0 ? size : new Size(DEFAULT_ROWS, DEFAULT_COLUMNS);
            }
        } catch (IOException | NumberFormatException e) {
            return new Size(DEFAULT_ROWS, DEFAULT_COLUMNS); // no stty, or unexpected output
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return new Size(DEFAULT_ROWS, DEFAULT_COLUMNS);
    }
}
