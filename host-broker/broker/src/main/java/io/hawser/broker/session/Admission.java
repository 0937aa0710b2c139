package io.hawser.broker.session;

import java.util.concurrent.CompletableFuture;

/** The pool's part in the admission of guests. Event loop only. */
public interface Admission {
    /** The admission of a broker that is alone. */
    Admission ALONE = new Admission() {
        @Override
        public String objection(String vgpu) {
            return null;
        }

        @Override
        public CompletableFuture<Void> markInUse(String vgpu) {
            return CompletableFuture.completedFuture(null);
        }
    };

    /** Why no guest of the vGPU may come now, as a message for the guest; null when it may. */
    String objection(String vgpu);

    /**
     * Marks the vGPU as in use, so that no other broker takes it.
     *
     * @return completes on the event loop: at once when it is marked, else when the database has the mark. It completes
     *     exceptionally when the vGPU must not have a session, with a message for the guest.
     */
    CompletableFuture<Void> markInUse(String vgpu);
}
