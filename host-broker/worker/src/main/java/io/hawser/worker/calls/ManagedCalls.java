package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.ManagedManualCalls;
import io.hawser.cuda.generated.ManagedReplies;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Session;

/** What a guest asks before it offers managed memory. Session thread. */
final class ManagedCalls implements ManagedManualCalls {
    private final Session session;
    private final SharedRegion region;

    /**
     * Makes the calls of a session.
     *
     * @param region of its guest; null when its carrier is another.
     */
    ManagedCalls(Session session, SharedRegion region) {
        this.session = session;
        this.region = region;
    }

    @Override
    public void hwsRegionAddress(CallContext call) {
        // No secret: hwsHostMap tells it of each part that it maps.
        boolean isSeen = region != null && session.backend().canMapHost();
        ManagedReplies.hwsRegionAddress(call.reply(), isSeen ? region.memory().address() : 0);
        call.finish(0);
    }
}
