package io.hawser.worker.channel.shm;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.worker.channel.ring.GuestRings;
import io.hawser.worker.channel.ring.RingLink;
import io.hawser.worker.channel.ring.RingSleep;

/** The link to a guest in a slot of a region. */
public final class ShmLink extends RingLink {
    /**
     * Starts the session thread.
     *
     * @param region the guest's region; the caller closes it after {@link #shutdown}.
     * @param doorbell eventfd by which a guest of KIND_MACHINE wakes this worker, or null; the caller closes it.
     */
    public ShmLink(SharedRegion region, EventFd doorbell) {
        super(new SlotRings(region, ShmSleep.of(region, doorbell)));
        start();
    }

    private record SlotRings(SharedRegion region, RingSleep sleep) implements GuestRings {
        @Override
        public RingReader commands() {
            return RingReader.command(region.memory(), region.geometry(), region.place().slot());
        }

        @Override
        public RingWriter replies() {
            return RingWriter.reply(region.memory(), region.geometry(), region.place().slot());
        }

        @Override
        public void committed() {
            region.wakeReader();
        }

        @Override
        public void released() {
            region.wakeSender();
        }

        @Override
        public String departure() {
            int state = region.guestState();
            return switch (state) {
                case RegionLayout.GUEST_CLAIMED -> null;
                case RegionLayout.GUEST_LEFT -> "the guest has left the region";
                case RegionLayout.GUEST_ABANDONED -> "the guest process has died";
                default -> "the guest has given up its slot: state=" + state;
            };
        }
    }
}
