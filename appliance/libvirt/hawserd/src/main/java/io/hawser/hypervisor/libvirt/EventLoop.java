package io.hawser.hypervisor.libvirt;

import java.lang.System.Logger.Level;
import org.libvirt.Connect;
import org.libvirt.ErrorCallback;
import org.libvirt.Library;
import org.libvirt.LibvirtException;

/**
 * libvirt's event loop: the one thread of the process that reads from libvirtd, sends keepalives and runs callbacks.
 * libvirt requires it before the first connection. It runs until the process ends.
 */
final class EventLoop {
    private static final System.Logger LOGGER = System.getLogger(EventLoop.class.getName());
    // Reachable for the garbage collector: the library has only its address.
    private static final ErrorCallback QUIET = new ErrorCallback();
    private static boolean started;

    private EventLoop() {}

    /** Starts the loop unless it runs. */
    static synchronized void start() throws LibvirtException {
        if (started) {
            return;
        }
        // By default libvirt writes every error to stderr, also errors that the caller expects.
        Connect.setErrorCallback(QUIET);
        Library.initEventLoop();
        Thread.ofPlatform().name("libvirt-events").daemon().start(EventLoop::run);
        started = true;
    }

    private static void run() {
        while (true) {
            try {
                Library.processEvent();
            } catch (LibvirtException failed) {
                // A failure of the loop, not of a connection. The loop must continue, or no event would arrive any
                // more.
                LOGGER.log(Level.ERROR, "libvirt's event loop failed in one round and goes on", failed);
            }
        }
    }
}
