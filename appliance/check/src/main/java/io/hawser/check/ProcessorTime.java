package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** The processor time of processes, as the kernel counts it in {@code /proc}: the same in each mode of the jail. */
final class ProcessorTime {
    private static final double TICKS_A_SECOND = 100; // Linux USER_HZ on x86-64
    // proc_pid_stat(5), fields after the name: 14 and 15 are the process's own, 16 and 17 those of its ended children.
    private static final int FIRST_FIELD = 3;
    private static final int OWN = 14;
    private static final int ENDED_CHILDREN = 16;

    private ProcessorTime() {
    }

    /** Seconds of all present and ended children of a process. */
    static double ofChildren(ProcessHandle parent) {
        while (true) {
            double ended = seconds(parent.pid(), ENDED_CHILDREN);
            double running = parent.children().mapToDouble(child -> seconds(child.pid(), OWN)).sum();
            if (seconds(parent.pid(), ENDED_CHILDREN) == ended) { // else a child may count twice
                return ended + running;
            }
        }
    }

    /** Seconds of the ended children of this process. */
    static double ofEndedChildren() {
        return seconds(ProcessHandle.current().pid(), ENDED_CHILDREN);
    }

    private static double seconds(long pid, int field) {
        try {
            return seconds(Files.readString(Path.of("/proc", Long.toString(pid), "stat")), field);
        } catch (NoSuchFileException e) {
            return 0; // it has ended meanwhile
        } catch (IOException e) {
            throw new CheckException("the processor time of a process cannot be read: pid=" + pid, e);
        }
    }

    /** User and system time in a line of {@code /proc/PID/stat}. The name in parentheses may contain anything. */
    static double seconds(String stat, int field) {
        String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ");
        return (Long.parseLong(fields[field - FIRST_FIELD]) + Long.parseLong(fields[field + 1 - FIRST_FIELD]))
            / TICKS_A_SECOND;
    }
}
