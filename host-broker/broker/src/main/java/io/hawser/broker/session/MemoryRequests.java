package io.hawser.broker.session;

import io.hawser.broker.ipc.SharedMemory;
import io.hawser.broker.pool.Worker;
import io.hawser.broker.pool.WorkerMessage;

/**
 * The requests of a session's worker about memory that it shares with other sessions of its vGPU.
 *
 * @param memory of all sessions.
 */
record MemoryRequests(SharedMemory memory, Worker worker, Session session) {
    /** Answers a request. Event loop only. */
    void handle(WorkerMessage.OfMemory message) {
        String vgpu = session.vgpu();
        switch (message) {
            case WorkerMessage.Share share -> {
                int descriptor = share.passed() ? worker.receiveDescriptor() : SharedMemory.NO_DESCRIPTOR;
                if (!share.passed() || descriptor >= 0) {
                    worker.sendShared(share.name(), memory.share(session.id(), vgpu, share, descriptor));
                }
            }
            case WorkerMessage.Unshare unshare -> {
                memory.unshare(session.id(), vgpu, unshare.name());
                worker.sendUnshared(unshare.name());
            }
            case WorkerMessage.Release release -> memory.release(session.id(), vgpu, release.name());
            case WorkerMessage.Find find -> memory.find(session.id(), vgpu, find.name())
                .ifPresentOrElse(found -> worker.sendFound(found.share(), found.descriptor()),
                    () -> worker.sendNotFound(find.name()));
        }
    }
}
