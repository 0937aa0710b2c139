package io.hawser.check;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The memory of a process, from /proc. */
final class ProcessMemory {
    private ProcessMemory() {
    }

    /** Its resident memory. @throws CheckException if it has ended. */
    static long residentKib(long pid) {
        Path status = Path.of("/proc", Long.toString(pid), "status");
        try {
            return Files.readAllLines(status).stream().filter(line -> line.startsWith("VmRSS:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", ""))).findFirst()
                .orElseThrow(() -> new CheckException("the process has ended: pid=" + pid)); // a zombie has no memory
        } catch (IOException e) {
            throw new CheckException("the memory of a process must be readable: pid=" + pid, e);
        }
    }
}
