package io.hawser.hypervisor.libvirt;

import java.lang.System.Logger.Level;
import org.libvirt.Connect;
import org.libvirt.ErrorCallback;
import org.libvirt.Library;
import org.libvirt.LibvirtException;

/**
 * libvirt's event loop: one thread for the process, which reads what libvirtd sends, asks whether it is there and calls
 * back. It is there before the first connection, else libvirt would have none of that, and as long as the process.
 */
final class EventLoop {
    private static final System.Logger LOGGER = System.getLogger(EventLoop.class.getName());
    // Held here: the library has only its address.
    private static final ErrorCallback QUIET = new ErrorCallback();
    private static boolean started;

    private EventLoop() { }

    /** Starts it unless it runs. */
    static synchronized void start() throws LibvirtException {
        if (started) {
            return;
        }
        // By default libvirt writes each error to stderr, also those that a caller expects.
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
                // The loop's own failure, not a connection's: without it nothing would be noticed any more.
                LOGGER.log(Level.ERROR, "libvirt's event loop failed in one round and goes on", failed);
            }
        }
    }
}
