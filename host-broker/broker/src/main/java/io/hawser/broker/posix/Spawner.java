package io.hawser.broker.posix;

import java.util.List;

/** A way of starting a child with the descriptors 0 to 3 as {@link ChildProcess#start} says; any thread. */
@FunctionalInterface
public interface Spawner {
    /** In the broker's own surroundings. */
    Spawner PLAIN = Posix::spawn;

    /**
     * Starts it.
     *
     * @return its process id.
     */
    int spawn(List<String> command, List<String> environment, int log, int control) throws PosixException;
}
