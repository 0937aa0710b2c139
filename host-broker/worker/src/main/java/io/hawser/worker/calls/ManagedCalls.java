package io.hawser.worker.calls;

import io.hawser.cuda.generated.ManagedManualCalls;
import io.hawser.cuda.generated.ManagedReplies;
import io.hawser.worker.channel.shm.SharedRegion;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Session;

/** Serves the request that a guest sends before it provides managed memory. Session thread. */
final class ManagedCalls implements ManagedManualCalls<Call> {
    private final Session session;
    private final SharedRegion region;

    /**
     * Makes the calls of a session.
     *
     * @param region the guest's region; null over another carrier.
     */
    ManagedCalls(Session session, SharedRegion region) {
        this.session = session;
        this.region = region;
    }

    @Override
    public void hwsRegionAddress(Call call) {
        // The address is no secret: hwsHostMap returns it for each part that it maps.
        boolean isMappable = region != null && session.backend().canMapHost();
        ManagedReplies.hwsRegionAddress(call.reply(), isMappable ? region.memory().address() : 0);
        call.finish(0);
    }
}
