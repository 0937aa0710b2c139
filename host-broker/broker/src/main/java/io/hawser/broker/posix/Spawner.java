package io.hawser.broker.posix;

import java.util.List;

/** Starts a child with the descriptors 0 to 3 of {@link ChildProcess#start}; any thread. */
@FunctionalInterface
public interface Spawner {
    /** Starts the child in the broker's own namespaces. */
    Spawner PLAIN = Posix::spawn;

    /**
     * Starts a child.
     *
     * @return its process id.
     */
    int spawn(List<String> command, List<String> environment, int log, int control) throws PosixException;
}
